create table if not exists {table} (
    id           text primary key,
    record       jsonb not null,
    modify_time  timestamptz,
    deleted_at   timestamptz,
    version      text,
    snapshot_id  text,
    synced_at    timestamptz not null,
    change_seq   bigint not null,
    content_hash bytea not null
) with (fillfactor = 80);

create index if not exists {index} on {table} (change_seq);

comment on column {table}.change_seq is 'Grows with every change of a row, in commit order: a reader''s cursor.';
comment on column {table}.deleted_at is 'Not null: deleted at the source. The first time stays.';
comment on column {table}.version is 'For people who debug; never compare it.';

create or replace view {live} as
select id, record, modify_time, version, snapshot_id, synced_at, change_seq
from {table}
where deleted_at is null;
