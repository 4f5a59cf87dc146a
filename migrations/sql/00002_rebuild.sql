-- One row per full pass (no sync token) whose pages go to the resource's staging
-- table. Its epoch is the compare-and-set of every page.
create table {sync}.passes (
    resource        text primary key,
    purpose         text not null check (purpose in ('rebuild', 'plan', 'verify')),
    reason          text not null default '',
    epoch           bigint not null,
    -- Where the pass stands: the next page's cursor; the next round's token once it is complete.
    cursor          text not null default '',
    sync_token      text not null default '',
    snapshot_id     text not null default '',
    data_cutoff_at  timestamptz,
    pages           bigint not null default 0,
    -- What staging must hold, ids that came on two pages included.
    rows            bigint not null default 0,
    complete        boolean not null default false,
    -- The deletion fuse holds it, and what a merge would do.
    held            boolean not null default false,
    held_difference jsonb,
    -- The state row's change_seq when the pass began: a merge is for that mirror only.
    base_seq        bigint not null,
    -- How often it was begun anew.
    restarts        integer not null default 0,
    started_at      timestamptz not null
);

alter table {sync}.state
    add column rebuilt_at     timestamptz,
    add column rebuild_reason text not null default '',
    add column verified_at    timestamptz,
    -- What the last verification found: null before the first one.
    add column verified_drift jsonb;

alter table {sync}.runs add column staged bigint not null default 0;
