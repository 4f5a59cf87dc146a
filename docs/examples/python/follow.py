"""Follows the changes of one resource of the mirror and prints them. It keeps its
place in a table of its own, so that it can stop at any time.

    pip install "psycopg[binary]>=3.1" && DATABASE_URL=postgres://… python follow.py contracts
"""
import os
import select
import sys

import psycopg
from psycopg import sql

resource = sys.argv[1]
changes = sql.SQL(
    "select id, deleted_at is not null, change_seq from xiaoqu.{} where change_seq > %s order by change_seq limit 500"
).format(sql.Identifier(resource + "_all"))


def batch(conn) -> int:
    """Deals with some changes and moves the place, in one transaction."""
    with conn.transaction():
        place = conn.execute("select change_seq from mirror_followers where resource = %s for update", [resource]).fetchone()
        rows = conn.execute(changes, [place[0] if place else 0]).fetchall()
        for id, deleted, _ in rows:
            print(resource, id, "deleted" if deleted else "changed")
        if rows:
            conn.execute(
                "insert into mirror_followers values (%s, %s) on conflict (resource) do update set change_seq = excluded.change_seq",
                [resource, rows[-1][2]],
            )
        return len(rows)


with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as conn:
    conn.execute("create table if not exists mirror_followers (resource text primary key, change_seq bigint not null)")
    notices = []  # also those that come with the answers to our own statements
    conn.add_notify_handler(notices.append)
    conn.execute("listen xiaoqu_changes")
    while True:
        notices.clear()
        while batch(conn):
            pass
        if os.environ.get("ONCE"):
            break
        # A notice is a hint: without one we look each minute.
        if not notices:
            select.select([conn], [], [], 60)
