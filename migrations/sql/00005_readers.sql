-- For readers: typed columns that are null where a value does not fit, and how
-- fresh the mirror is. The functions never fail on a value, so a view over them
-- cannot either; immutable, so that indexes can be built on them.

create or replace function {data}._text(v jsonb) returns text language sql immutable parallel safe as $$
select case when pg_catalog.jsonb_typeof(v) in ('string', 'number', 'boolean') then v #>> '{}' end
$$;

create or replace function {data}._numeric(v jsonb) returns numeric language sql immutable parallel safe as $$
select case pg_catalog.jsonb_typeof(v)
       when 'number' then v::numeric
       when 'string' then case when v #>> '{}' ~ '^\s*[-+]?[0-9]{1,100}([.][0-9]{1,100})?\s*$' then (v #>> '{}')::numeric end
       end
$$;

create or replace function {data}._integer(v jsonb) returns bigint language sql immutable parallel safe as $$
select case when {data}._numeric(v) between -9223372036854775808 and 9223372036854775807
                 and {data}._numeric(v) = pg_catalog.trunc({data}._numeric(v)) then {data}._numeric(v)::bigint end
$$;

create or replace function {data}._boolean(v jsonb) returns boolean language sql immutable parallel safe as $$
select case when pg_catalog.jsonb_typeof(v) = 'boolean' then v::boolean
            when v in ('"true"', '"1"', '1') then true
            when v in ('"false"', '"0"', '0') then false end
$$;

-- A list of texts; null when anything else is in it.
create or replace function {data}._texts(v jsonb) returns text[] language sql immutable parallel safe as $$
select case when pg_catalog.jsonb_typeof(v) = 'array' then (
    select case when pg_catalog.bool_and({data}._text(e) is not null or e = 'null') is not false
                then coalesce(pg_catalog.array_agg({data}._text(e) order by i), '{}') end
    from pg_catalog.jsonb_array_elements(v) with ordinality as x (e, i)) end
$$;

-- By the rules of modify_time: RFC 3339 with the usual liberties, Unix seconds or
-- milliseconds; without a zone it is the given one's.
create or replace function {data}._time(v jsonb, zone text) returns timestamptz language plpgsql immutable parallel safe as $$
declare
    t text := {data}._text(v);
    p text[];
    d date;
    naive timestamp;
    at timestamptz;
begin
    if t is null or pg_catalog.length(t) > 64 or pg_catalog.jsonb_typeof(v) = 'boolean' then
        return null;
    end if;
    if t ~ '^([0-9]{9,10}|[0-9]{13})([.][0-9]+)?$' then
        return pg_catalog.timezone('UTC', timestamp '1970-01-01' + pg_catalog.make_interval(secs => 1) *
            (pg_catalog.trunc(case when t ~ '^[0-9]{13}' then t::numeric / 1000 else t::numeric end, 6))::double precision);
    end if;
    p := pg_catalog.regexp_match(t,
        '^([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,30}))?)?(?: ?([Zz]|[-+][0-9]{2}(?::?[0-9]{2})?))?)?$');
    if p is null or p[1] = '0000' or p[2] not between '01' and '12' or p[3] not between '01' and '31' then
        return null;
    end if;
    d := pg_catalog.make_date(p[1]::int, p[2]::int, 1) + (p[3]::int - 1);
    if pg_catalog.date_part('month', d) <> p[2]::int then
        return null;
    end if;
    naive := d;
    if p[4] is not null then
        if not (p[4]::int < 24 or p[4] = '24' and p[5]::int = 0 and coalesce(p[6]::int, 0) = 0 and coalesce(p[7], '0') ~ '^0+$')
           or p[5]::int > 59 or not (coalesce(p[6]::int, 0) < 60 or p[6] = '60' and p[5] = '59') then
            return null;
        end if;
        naive := naive + pg_catalog.make_interval(hours => p[4]::int, mins => p[5]::int, secs => coalesce(p[6]::int, 0))
            + pg_catalog.make_interval(secs => 0.000001) * pg_catalog.rpad(pg_catalog.left(coalesce(p[7], '0'), 6), 6, '0')::int;
    end if;
    if p[8] is null then
        at := pg_catalog.timezone(zone, naive);
        if pg_catalog.timezone(zone, at) <> naive then -- a clock that was put forward skipped it
            return null;
        end if;
    elsif p[8] in ('Z', 'z') then
        at := pg_catalog.timezone('UTC', naive);
    else
        if pg_catalog.substr(p[8], 2, 2)::int > 15 or coalesce(nullif(pg_catalog.substr(pg_catalog.replace(p[8], ':', ''), 4), '')::int, 0) > 59 then
            return null;
        end if;
        at := pg_catalog.timezone('UTC', naive - (pg_catalog.left(p[8], 1) || '1')::int * pg_catalog.make_interval(
            hours => pg_catalog.substr(p[8], 2, 2)::int,
            mins => coalesce(nullif(pg_catalog.substr(pg_catalog.replace(p[8], ':', ''), 4), '')::int, 0)));
    end if;
    return case when at >= timestamptz '0001-01-01Z' and at < timestamptz '10000-01-01Z' then at end;
end
$$;

-- The day as it is written; of a time, the day there.
create or replace function {data}._date(v jsonb) returns date language sql immutable parallel safe as $$
select case when {data}._time(v, 'UTC') is not null and pg_catalog.jsonb_typeof(v) = 'string' and v #>> '{}' ~ '^[0-9]{4}-'
            then pg_catalog.make_date(pg_catalog.left(v #>> '{}', 4)::int, pg_catalog.substr(v #>> '{}', 6, 2)::int, pg_catalog.substr(v #>> '{}', 9, 2)::int) end
$$;

-- Letters and digits become stars but for the last two, so that people who compare
-- still see that two values differ; what is short is hidden whole.
create or replace function {data}._mask(v jsonb) returns jsonb language sql immutable parallel safe as $$
select case when pg_catalog.jsonb_typeof(v) in ('string', 'number')
            then pg_catalog.to_jsonb(case when pg_catalog.length(v #>> '{}') < 6 then '***'
                 else '***' || pg_catalog.right(v #>> '{}', 2) end)
            when v is null or v = 'null' then v
            else '"***"'::jsonb end
$$;

-- What the views of each resource were made from: they are made anew when it differs.
create table {sync}.views (
    resource   text primary key,
    definition jsonb not null,
    applied_at timestamptz not null default now()
);

create or replace view {data}.freshness as
select s.resource,
       case when s.last_success_at is null then 'first' else s.phase end as phase,
       s.complete_cutoff_at as data_cutoff_at,
       s.last_success_at,
       now() - coalesce(s.complete_cutoff_at, s.last_success_at) as age,
       s.live_rows,
       s.deleted_rows,
       coalesce(p.held, false) as held
from {sync}.state s left join {sync}.passes p on p.resource = s.resource;

create or replace function {data}.assert_fresh(resource text, max_age interval) returns void language plpgsql stable as $$
declare
    f record;
begin
    select * into f from {data}.freshness w where w.resource = assert_fresh.resource;
    if f.age is null then
        raise exception 'the mirror of % was never complete', resource
            using errcode = 'object_not_in_prerequisite_state', hint = 'see xiaoqu-sync status';
    elsif f.age > max_age then
        raise exception 'the mirror of % is % old, more than %', resource, pg_catalog.date_trunc('second', f.age), max_age
            using errcode = 'object_not_in_prerequisite_state', hint = 'see xiaoqu-sync status',
                  detail = 'as of ' || coalesce(f.data_cutoff_at, f.last_success_at);
    end if;
end
$$;

comment on function {data}.assert_fresh(text, interval) is 'Fails when the mirror of the resource is older than that: for readers who must not use stale data.';
