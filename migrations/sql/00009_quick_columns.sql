-- The same values as before, and quicker. What was SQL was planned anew with every
-- query on a view; PL/pgSQL the planner leaves alone. Captures of a regular
-- expression cost fifty times what a match does, so there are none. No value
-- changes: indexes that stand on these functions stay right.

create or replace function {data}._text(v jsonb) returns text language plpgsql immutable strict parallel safe as $$
begin
    return case when pg_catalog.jsonb_typeof(v) in ('string', 'number', 'boolean') then v #>> '{}' end;
end
$$;

create or replace function {data}._numeric(v jsonb) returns numeric language plpgsql immutable strict parallel safe as $$
begin
    return case pg_catalog.jsonb_typeof(v)
           when 'number' then v::numeric
           when 'string' then case when v #>> '{}' ~ '^\s*[-+]?[0-9]{1,100}(?:[.][0-9]{1,100})?\s*$' then (v #>> '{}')::numeric end
           end;
end
$$;

create or replace function {data}._integer(v jsonb) returns bigint language plpgsql immutable strict parallel safe as $$
declare
    n numeric := case when pg_catalog.jsonb_typeof(v) = 'number' then v::numeric else {data}._numeric(v) end;
begin
    return case when n between -9223372036854775808 and 9223372036854775807 and n = pg_catalog.trunc(n) then n::bigint end;
end
$$;

create or replace function {data}._boolean(v jsonb) returns boolean language plpgsql immutable strict parallel safe as $$
begin
    return case when v in ('true', '"true"', '"1"', '1') then true
                when v in ('false', '"false"', '"0"', '0') then false end;
end
$$;

-- What _time leaves over, by the same rules: Unix times, dates alone, no seconds, a
-- leap second, 24:00, finer fractions, zones without colon.
create or replace function {data}._time_odd(v jsonb, zone text) returns timestamptz language plpgsql immutable strict parallel safe as $$
declare
    t text := {data}._text(v);
    clock text := pg_catalog.substr(t, 17); -- behind the minutes
    cut int := pg_catalog.strpos(pg_catalog.translate(clock, 'z+-', 'ZZZ'), 'Z'); -- where the zone begins in it
    name text := case when cut > 0 then pg_catalog.substr(clock, cut) else '' end; -- of the zone
    seconds text := pg_catalog.rtrim(case when cut > 0 then pg_catalog.left(clock, cut - 1) else clock end); -- :SS.ffffff
    day timestamp;
    naive timestamp;
    at timestamptz;
begin
    if t is null or pg_catalog.length(t) > 64 or pg_catalog.jsonb_typeof(v) = 'boolean' then
        return null;
    end if;
    if t ~ '^(?:[0-9]{9,10}|[0-9]{13})(?:[.][0-9]+)?$' then
        return pg_catalog.timezone('UTC', timestamp '1970-01-01' + pg_catalog.make_interval(secs => 1) *
            (pg_catalog.trunc(case when t ~ '^[0-9]{13}' then t::numeric / 1000 else t::numeric end, 6))::double precision);
    end if;
    if t !~ '^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])(?:[Tt ](?:[01][0-9]|2[0-4]):[0-5][0-9](?::(?:[0-5][0-9]|60)(?:[.,][0-9]{1,30})?)?(?: ?(?:[Zz]|[-+](?:0[0-9]|1[0-5])(?::?[0-5][0-9])?))?)?$'
       or t ~ '^0000' or t ~ '^.{11}24' and (pg_catalog.substr(t, 15, 2) <> '00' or seconds ~ '[1-9]')
       or seconds ~ '^:60' and pg_catalog.substr(t, 15, 2) <> '59' then
        return null;
    end if;
    day := pg_catalog.make_date(pg_catalog.left(t, 4)::int, pg_catalog.substr(t, 6, 2)::int, 1) + (pg_catalog.substr(t, 9, 2)::int - 1);
    if pg_catalog.date_part('month', day) <> pg_catalog.substr(t, 6, 2)::int then
        return null;
    end if;
    naive := day;
    if pg_catalog.length(t) > 10 then
        naive := day + pg_catalog.make_interval(hours => pg_catalog.substr(t, 12, 2)::int, mins => pg_catalog.substr(t, 15, 2)::int,
                secs => pg_catalog.rpad(pg_catalog.substr(seconds, 2, 2), 2, '0')::int)
            + pg_catalog.make_interval(secs => 0.000001) * pg_catalog.rpad(pg_catalog.substr(seconds, 5, 6), 6, '0')::int;
    end if;
    if name = '' then
        at := pg_catalog.timezone(zone, naive);
        if pg_catalog.timezone(zone, at) <> naive then -- a clock that was put forward skipped it
            return null;
        end if;
    elsif name in ('Z', 'z') then
        at := pg_catalog.timezone('UTC', naive);
    else
        at := pg_catalog.timezone('UTC', naive - pg_catalog.make_interval(hours => pg_catalog.left(name, 3)::int,
            mins => (pg_catalog.left(name, 1) || pg_catalog.rpad(pg_catalog.substr(pg_catalog.replace(name, ':', ''), 4), 2, '0'))::int));
    end if;
    return case when at >= timestamptz '0001-01-01Z' and at < timestamptz '10000-01-01Z' then at end;
end
$$;

-- By the rules of modify_time: RFC 3339 with the usual liberties, Unix seconds or
-- milliseconds; without a zone it is the given one's. The first form names its zone
-- and is read alike under every DateStyle and TimeZone, so immutable is true of it.
create or replace function {data}._time(v jsonb, zone text) returns timestamptz language plpgsql immutable strict parallel safe as $$
begin
    return case when v #>> '{}' ~ '^[12][0-9]{3}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:[.][0-9]{1,6})?(?:Z|[-+](?:0[0-9]|1[0-5]):[0-5][0-9])$'
           then (v #>> '{}')::timestamptz else {data}._time_odd(v, zone) end;
end
$$;

-- The day as it is written; of a time, the day there.
create or replace function {data}._date_odd(v jsonb) returns date language plpgsql immutable strict parallel safe as $$
begin
    return case when pg_catalog.jsonb_typeof(v) = 'string' and v #>> '{}' ~ '^[0-9]{4}-' and {data}._time(v, 'UTC') is not null
           then pg_catalog.make_date(pg_catalog.left(v #>> '{}', 4)::int, pg_catalog.substr(v #>> '{}', 6, 2)::int, pg_catalog.substr(v #>> '{}', 9, 2)::int) end;
end
$$;

create or replace function {data}._date(v jsonb) returns date language plpgsql immutable strict parallel safe as $$
begin
    return case when v #>> '{}' ~ '^[12][0-9]{3}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)$'
           then (v #>> '{}')::date else {data}._date_odd(v) end;
end
$$;

-- An index takes no more than a third of a page. A value that is too long for one
-- would keep its row out of the table, so in an indexed column it does not fit.
create or replace function {data}._short(v text) returns text language plpgsql immutable strict parallel safe as $$
begin
    return case when pg_catalog.octet_length(v) <= 2000 then v end;
end
$$;

create or replace function {data}._short(v numeric) returns numeric language plpgsql immutable strict parallel safe as $$
begin
    return case when pg_catalog.abs(v) < 1e1000 and pg_catalog.scale(v) <= 1000 then v end;
end
$$;

create or replace function {data}._short(v text[]) returns text[] language plpgsql immutable strict parallel safe as $$
begin
    return case when (select coalesce(pg_catalog.max(pg_catalog.octet_length(e)), 0) from pg_catalog.unnest(v) e) <= 2000 then v end;
end
$$;
