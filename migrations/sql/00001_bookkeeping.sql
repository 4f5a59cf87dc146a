-- One row per resource. Its epoch is the compare-and-set of every commit.
create table {sync}.state (
    resource              text primary key,
    phase                 text not null default 'incremental' check (phase in ('incremental', 'rebuild')),
    epoch                 bigint not null default 0,
    -- The round in hand: the token that it began with, the next page's cursor, its snapshot.
    sync_token            text not null default '',
    cursor                text not null default '',
    snapshot_id           text not null default '',
    data_cutoff_at        timestamptz,
    pages                 bigint not null default 0 check (pages >= 0),
    -- Rows as they are, kept by the statement that changes them, so that status need not count.
    change_seq            bigint not null default 0,
    live_rows             bigint not null default 0,
    deleted_rows          bigint not null default 0,
    -- The tenant that the mirror was filled from; '' when it was never told.
    tenant                text not null default '',
    -- The last complete round.
    last_success_at       timestamptz,
    complete_cutoff_at    timestamptz,
    last_commit_at        timestamptz,
    -- Rebuilds since the last complete round.
    restarts              integer not null default 0,
    restart_reason        text not null default '',
    restarted_at          timestamptz,
    last_error_code       text not null default '',
    last_error_message    text not null default '',
    last_error_request_id text not null default '',
    last_error_at         timestamptz
);

create table {sync}.runs (
    id          bigint generated always as identity primary key,
    resource    text not null,
    mode        text not null,
    outcome     text not null default '',
    code        text not null default '',
    message     text not null default '',
    request_id  text not null default '',
    host        text not null default '',
    pid         integer not null default 0,
    started_at  timestamptz not null default now(),
    ended_at    timestamptz,
    pages       bigint not null default 0,
    received    bigint not null default 0,
    inserted    bigint not null default 0,
    updated     bigint not null default 0,
    deleted     bigint not null default 0,
    revived     bigint not null default 0,
    unchanged   bigint not null default 0,
    duplicates  bigint not null default 0,
    quarantined bigint not null default 0,
    mended      bigint not null default 0,
    retries     bigint not null default 0
);

create index runs_resource on {sync}.runs (resource, id);

-- What could not be mirrored as it came. The same bytes again only raise seen.
create table {sync}.quarantine (
    id            bigint generated always as identity primary key,
    resource      text not null,
    -- refused: not in the mirror. mended: in the mirror, with U+FFFD where text could not be stored.
    kind          text not null check (kind in ('refused', 'mended')),
    reason        text not null,
    record_id     text,
    raw           bytea not null,
    raw_hash      bytea not null,
    -- Length as received; raw is shorter only for a record beyond the size limit.
    raw_length    bigint not null,
    request_id    text not null default '',
    snapshot_id   text not null default '',
    run_id        bigint,
    seen          bigint not null default 1,
    first_seen_at timestamptz not null default now(),
    last_seen_at  timestamptz not null default now(),
    unique (resource, kind, raw_hash)
);

-- Names the holder of a lease for people. The lease itself is an advisory lock.
create table {sync}.leases (
    resource    text primary key,
    host        text not null,
    pid         integer not null,
    since       timestamptz not null,
    backend_pid integer not null
);

create view {data}.freshness as
select resource,
       case when last_success_at is null then 'first' else phase end as phase,
       complete_cutoff_at as data_cutoff_at,
       last_success_at,
       now() - coalesce(complete_cutoff_at, last_success_at) as age,
       live_rows,
       deleted_rows
from {sync}.state;

comment on view {data}.freshness is 'How far each mirrored resource has come: as of data_cutoff_at it equals the remote.';
