-- The tables of the core. A statement ends with a semicolon at the end of a line.
-- Ids, JSON and instants (RFC 3339, UTC, milliseconds) are text. What grows long stands last in its
-- row, so that a change of the columns before it does not read it.

create table schema_migrations (
    number bigint primary key,
    name text not null,
    applied text not null
);

-- One row. Every append takes its positions here, so they become visible in order to every reader.
create table log (
    id bigint primary key check (id = 1),
    epoch text not null,
    head bigint not null,
    arrivals bigint not null
);

insert into log (id, epoch, head, arrivals) values (1, lower(hex(randomblob(3))), 0, 0);

create table events (
    position integer primary key,
    session_id text not null,
    task_id text not null,
    run_id text not null,
    seq bigint not null,
    event_id text not null,
    event text not null,
    ts text not null,
    envelope text not null,
    unique (run_id, seq)
);

create index events_of_session on events (session_id, position);

create table sessions (
    id text primary key,
    channel text not null,
    owner text not null,
    created text not null,
    updated text not null,
    title text not null
);

create index sessions_by_age on sessions (updated, id);

create index sessions_of_owner on sessions (owner, updated, id);

create index sessions_of_channel on sessions (owner, channel, updated, id);

-- Never rewritten. `number` counts the messages of a session from 1.
create table messages (
    session_id text not null,
    number bigint not null,
    run_id text not null,
    created text not null,
    message text not null,
    primary key (session_id, number)
);

-- What was received. status: accepted, taken (in for a run), told (to the run), handled (run ended).
create table inbox (
    number integer primary key,
    channel text not null,
    app text not null,
    message_id text not null,
    chat_id text not null,
    principal text not null,
    received text not null,
    status text not null,
    steer bigint not null default 0,
    session_id text,
    run_id text,
    words text not null,
    raw text not null,
    unique (channel, app, message_id)
);

create index inbox_of_run on inbox (run_id, number);

create index inbox_of_session on inbox (session_id);

-- `brief` holds profile, skills, policy and limits by value. `origin` is where an answer goes.
create table tasks (
    id text primary key,
    session_id text not null,
    kind text not null,
    lane text not null,
    parent_task_id text,
    team_id text not null,
    principal text not null,
    client_key text,
    status text not null,
    stop_reason text,
    created text not null,
    updated text not null,
    origin text not null,
    brief text not null,
    attachments text not null,
    instruction text not null,
    unique (principal, client_key)
);

create index tasks_by_age on tasks (created, id);

create index tasks_of_principal on tasks (principal, created, id);

create index tasks_of_session on tasks (session_id, created, id);

-- A run starts when it is the first of its lane by (priority, arrival): 0 for one that goes on.
create table runs (
    id text primary key,
    task_id text not null,
    session_id text not null,
    lane text not null,
    status text not null,
    priority bigint not null,
    arrival bigint not null,
    fence bigint not null,
    last_seq bigint not null,
    attempt bigint not null,
    owner text not null,
    lease_until text not null,
    terminal bigint not null,
    parent_run_id text,
    created text not null,
    started text,
    ended text,
    stop_reason text,
    stop text,
    cost double precision,
    usage text not null,
    error text not null,
    answer text not null
);

create unique index runs_one_a_lane on runs (lane) where status = 'running';

create index runs_of_lane on runs (lane, status, priority, arrival);

create index runs_of_status on runs (status, priority, arrival);

create index runs_of_session on runs (session_id, status, priority, arrival);

create index runs_of_task on runs (task_id, arrival);

-- A Turn without its messages. Apart from `runs`, whose row changes with every batch of events.
create table checkpoints (
    run_id text primary key,
    head text not null
);

create table turn_log (
    run_id text not null,
    number bigint not null,
    message text not null,
    primary key (run_id, number)
);

create table questions (
    id text primary key,
    run_id text not null,
    session_id text not null,
    status text not null,
    asked text not null,
    expires text not null,
    closed text,
    answer text,
    question text not null
);

create index questions_of_session on questions (session_id, status, asked);

create index questions_of_run on questions (run_id, status);

create index questions_open on questions (status, expires) where status = 'open';

create table plans (
    run_id text not null,
    version bigint not null,
    session_id text not null,
    updated text not null,
    plan text not null,
    primary key (run_id, version)
);

create index plans_of_session on plans (session_id);

create table costs (
    number integer primary key,
    session_id text not null,
    run_id text not null,
    model text not null,
    input_tokens bigint not null,
    output_tokens bigint not null,
    cache_read_tokens bigint not null,
    cache_write_tokens bigint not null,
    cost double precision,
    recorded text not null
);

create index costs_of_session on costs (session_id);
