-- What a CronJob's alert or a person asks of the mirror in one statement. USAGE on
-- the schema and SELECT on the view are enough: the view reads with its owner's rights.
create view {sync}.health as
select s.resource,
       case when s.last_success_at is null then 'first' else s.phase end as phase,
       s.last_success_at,
       s.complete_cutoff_at as data_cutoff_at,
       extract(epoch from now() - coalesce(s.complete_cutoff_at, s.last_success_at))::bigint as age_seconds,
       s.live_rows,
       s.deleted_rows,
       s.pages as pages_in_hand,
       nullif(s.last_error_code, '') as last_error_code,
       s.last_error_at,
       recent.runs as runs_last_day,
       coalesce(p.held, false) as held,
       quarantine.refused as quarantined,
       quarantine.mended,
       holder.host as lease_host,
       holder.pid as lease_pid,
       holder.since as lease_since,
       s.rebuilt_at,
       nullif(s.rebuild_reason, '') as rebuild_reason,
       s.verified_at
from {sync}.state s
left join {sync}.passes p on p.resource = s.resource
cross join lateral (
    select coalesce(jsonb_object_agg(r.outcome, r.n), '{}') as runs
    from (
        select coalesce(nullif(outcome, ''), 'running') as outcome, count(*) as n
        from {sync}.runs
        where resource = s.resource and started_at > now() - interval '1 day'
        group by 1
    ) r
) recent
cross join lateral (
    select count(*) filter (where kind = 'refused') as refused, count(*) filter (where kind = 'mended') as mended
    from {sync}.quarantine
    where resource = s.resource
) quarantine
-- A holder's row counts only while its server process holds the resource's lock,
-- whose key is the head of this hash: a killed run leaves its row behind.
cross join lateral (
    select sha256(convert_to('xiaoqu-sync lease', 'UTF8') || '\x00' || convert_to(trim('"' from '{data}'), 'UTF8') || '\x00' || convert_to(s.resource, 'UTF8')) as hash
) lock
left join {sync}.leases holder on holder.resource = s.resource and exists (
    select from pg_catalog.pg_locks k
    where k.locktype = 'advisory' and k.granted and k.pid = holder.backend_pid and k.objsubid = 1
      and k.database = (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())
      and k.classid::bigint = ('x' || encode(substr(lock.hash, 1, 4), 'hex'))::bit(32)::bigint
      and k.objid::bigint = ('x' || encode(substr(lock.hash, 5, 4), 'hex'))::bit(32)::bigint);

comment on view {sync}.health is 'One row per resource: how fresh, what went wrong last, the last day''s runs by outcome, who works on it.';
comment on column {sync}.health.age_seconds is 'Since data_cutoff_at, or since last_success_at when the remote named no cut-off; null before the first success.';
comment on column {sync}.health.runs_last_day is 'Runs begun within 24 hours, by outcome: {"synced": 280, "failed": 2}.';
comment on column {sync}.health.held is 'The deletion fuse holds a rebuild: a person decides.';
