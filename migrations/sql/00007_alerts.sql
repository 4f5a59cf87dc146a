-- What somebody is to be told, a row for each target and condition. It is the
-- memory of what was said and the outbox of what was not, for all replicas.
create table {sync}.alerts (
    target        text not null,
    resource      text not null,
    class         text not null,
    code          text not null default '',
    detail        text not null default '',
    request_id    text not null default '',
    host          text not null default '',
    since         timestamptz not null,
    seen_at       timestamptz not null,
    -- Not null: the condition is over, and the target is still to hear of that.
    ended_at      timestamptz,
    -- When the target last took it; null before the first time.
    told_at       timestamptz,
    due_at        timestamptz not null,
    attempts      integer not null default 0,
    -- Until then one process has it in hand.
    claimed_until timestamptz,
    primary key (target, resource, class)
);
