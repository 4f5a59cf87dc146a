-- What purges of old tombstones took out of the readers' tables for good. A full
-- pass that still brings such a tombstone does not bring the row back, and
-- change_seq never goes back behind the rows that went.
create table {sync}.purges (
    resource   text primary key,
    before     timestamptz not null,
    change_seq bigint not null,
    purged_at  timestamptz not null
);
