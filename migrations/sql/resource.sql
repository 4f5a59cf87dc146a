-- It runs again over what is there, so every statement must bear that. A reader
-- who holds the table for long makes it fail, not wait in front of other readers.
select pg_catalog.set_config('lock_timeout', '10s', true);

create table if not exists {table} (
    id            text primary key,
    record        jsonb not null,
    modify_time   timestamptz,
    deleted_at    timestamptz,
    version       text,
    snapshot_id   text,
    synced_at     timestamptz not null,
    change_seq    bigint not null,
    content_hash  bytea not null,
    delete_reason text
) with (fillfactor = 80);

-- Tables of the first release lack the column. Absences were not known then.
alter table {table} add column if not exists delete_reason text;
update {table} set delete_reason = 'tombstone' where deleted_at is not null and delete_reason is null;

create index if not exists {index} on {table} (change_seq);

comment on column {table}.change_seq is 'Grows with every change of a row, in commit order: a reader''s cursor.';
comment on column {table}.deleted_at is 'Not null: deleted at the source. The first time stays.';
comment on column {table}.delete_reason is 'tombstone: the source said so. absent: a full pass of the source did not bring the row. Null: not deleted.';
comment on column {table}.version is 'For people who debug; never compare it.';

-- As it is before typed columns are configured. One that is there may have them.
do $do$ begin
create view {live} as
select id, record, modify_time, version, snapshot_id, synced_at, change_seq, deleted_at
from {table}
where deleted_at is null;
exception when duplicate_table then null;
end $do$;

-- A full pass as it arrives, until it is compared with the table. Logged, so that
-- a crash of the server loses no page; without a key, so that it is as fast as it
-- can be: of an id that comes twice the greater seq counts.
create table if not exists {staging} (
    seq          bigint not null,
    id           text not null,
    record       jsonb,
    modify_time  timestamptz,
    deleted_at   timestamptz,
    tombstone    boolean,
    version      text,
    snapshot_id  text,
    content_hash bytea,
    -- Not of the pass: an id that the next increment brings (for a verification).
    explains     boolean not null default false
) with (autovacuum_vacuum_insert_threshold = -1);

-- Rows are read once, in whole; only their number matters to the planner.
alter table {staging}
    alter column seq set statistics 10,
    alter column id set statistics 10;
