-- What agents asked for: each call that is done once, what is to be told of it, and
-- who may ask. Readers of the mirror need none of it.

create table {sync}.agent_tasks (
    id         text primary key,
    door       text not null,
    key        text not null,
    caller     text not null,
    capability text not null,
    -- JSON with its bytes as they came; jsonb would change numbers and order.
    input      bytea not null,
    -- SHA-256 of the input but for space: the same key is for the same input only.
    input_hash bytea not null,
    reply_to   bytea,
    state      text not null check (state in ('accepted', 'running', 'choosing', 'completed', 'failed', 'cancelled')),
    -- Answered while its caller waits; no worker takes it, only the same call again.
    at_once    boolean not null,
    choose     boolean not null,
    proposals  bytea,
    chosen     text not null default '',
    summary    text,
    data       bytea,
    failure    bytea,
    -- Links to documents with their tokens, because the platform is told them as often
    -- as it asks. The documents themselves know a token's hash alone.
    links      bytea,
    -- Raised by every claim: what an attempt writes is compared with it.
    attempt    integer not null default 0,
    -- Raised by what a waiting event may wait for.
    changes    integer not null default 0,
    created_at timestamptz not null default now(),
    started_at timestamptz,
    ended_at   timestamptz,
    -- From then on anybody may work on it; of one that runs, the end of its claim.
    due_at     timestamptz not null,
    unique (door, key)
);

create index agent_tasks_due on {sync}.agent_tasks (due_at) where state in ('accepted', 'running') and not at_once;
create index agent_tasks_ended on {sync}.agent_tasks (ended_at) where ended_at is not null;

-- What a platform is to be told, in the order of seq for each task.
create table {sync}.agent_events (
    seq      bigint generated always as identity primary key,
    id       text not null unique,
    task     text not null references {sync}.agent_tasks on delete cascade,
    kind     text not null,
    ref      text not null default '', -- a proposal
    at       timestamptz not null default now(),
    state    text not null default 'due' check (state in ('due', 'waiting', 'delivered', 'refused')),
    attempts integer not null default 0,
    -- The task's changes at the last attempt: one that waits is due when they differ.
    seen     integer not null default 0,
    -- Of one that is being delivered, the end of its claim.
    due_at   timestamptz not null default now(),
    why      text not null default ''  -- it was not taken
);

create index agent_events_task on {sync}.agent_events (task, seq);
create index agent_events_due on {sync}.agent_events (due_at) where state in ('due', 'waiting');

create table {sync}.agent_documents (
    hash       bytea primary key, -- SHA-256 of the link's token
    task       text not null references {sync}.agent_tasks on delete cascade,
    title      text not null,
    name       text not null,
    type       text not null,
    body       bytea not null,
    expires_at timestamptz not null
);

create index agent_documents_task on {sync}.agent_documents (task);

create table {sync}.agent_tokens (
    name       text primary key,
    hash       bytea not null unique, -- SHA-256 of the token
    scopes     text[] not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz            -- null: never
);

-- A code binds an account here to one user of a platform.
create table {sync}.agent_codes (
    hash       bytea primary key, -- SHA-256 of the code
    ref        text not null,
    display    text not null,
    uid        text,              -- of the platform's user who redeemed it
    expires_at timestamptz not null
);
