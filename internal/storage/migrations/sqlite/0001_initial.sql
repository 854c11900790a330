-- All tables of Larkspur. A statement ends with a semicolon at the end of a line.
-- Ids, JSON and timestamps (RFC 3339, UTC, milliseconds) are text. Long columns stand last in a
-- table, so that SQLite can update the columns before them without reading overflow pages.

create table schema_migrations (
    number bigint primary key,
    name text not null,
    applied text not null
);

-- One row. `head` is the newest event position, `arrivals` the number of queued runs. Both are
-- raised in the inserting transaction, so that positions become visible in order.
create table event_log (
    id bigint primary key check (id = 1),
    epoch text not null,
    head bigint not null,
    arrivals bigint not null
);

insert into event_log (id, epoch, head, arrivals) values (1, lower(hex(randomblob(3))), 0, 0);

-- Positions between `before` and `after` are never assigned to events. Every process skips some with
-- its first write, so that two copies of a log assign different ones.
create table event_gaps (
    before bigint primary key,
    after bigint not null
);

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

-- `scope` is what the session is the conversation of, such as a chat; '' for none.
create table sessions (
    id text primary key,
    channel text not null,
    owner text not null,
    created text not null,
    updated text not null,
    scope text not null,
    title text not null
);

create index sessions_by_age on sessions (updated, id);

create index sessions_of_owner on sessions (owner, updated, id);

create index sessions_of_channel on sessions (owner, channel, updated, id);

create index sessions_of_scope on sessions (channel, scope, created, id);

-- Append-only. `number` counts the messages of a session from 1.
create table messages (
    session_id text not null,
    number bigint not null,
    run_id text not null,
    created text not null,
    kind text not null,
    message text not null,
    primary key (session_id, number)
);
create index messages_words on messages (session_id, number, kind) where kind <> 'exchange';

-- Received messages. Status: accepted, assigned (to a run), delivered (to its model), handled.
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
    text text not null,
    raw text not null,
    unique (channel, app, message_id)
);

create index inbox_of_run on inbox (run_id, number);

create index inbox_of_session on inbox (session_id);

create index inbox_accepted on inbox (channel, app, number) where status = 'accepted';

-- `spec` holds profile, skills, policy and limits by value. `origin` is where the reply goes.
create table tasks (
    id text primary key,
    session_id text not null,
    kind text not null,
    lane text not null,
    parent_task_id text,
    team_id text not null,
    principal text not null,
    idempotency_key text,
    status text not null,
    stop_reason text,
    created text not null,
    updated text not null,
    origin text not null,
    spec text not null,
    attachments text not null,
    instruction text not null,
    unique (principal, idempotency_key)
);

-- Results of requests that were sent with an idempotency key, other than new tasks.
create table request_results (
    principal text not null,
    command text not null,
    idempotency_key text not null,
    session_id text not null,
    created text not null,
    result text not null,
    primary key (principal, command, idempotency_key)
);

create index request_results_of_session on request_results (session_id);

create index tasks_by_age on tasks (created, id);

create index tasks_of_principal on tasks (principal, created, id);

create index tasks_of_session on tasks (session_id, created, id);

-- A run starts when it is the first of its lane by (priority, arrival), not before `not_before`.
-- Priority is 0 for a resumed run, 1 for a new one. `attempt` counts the starts since the run last
-- made progress, `crashes` those of them that ended because the process died.
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
    crashes bigint not null,
    not_before text not null,
    owner text not null,
    lease_until text not null,
    terminal bigint not null,
    parent_run_id text,
    created text not null,
    started text,
    ended text,
    stop_reason text,
    stop_request text,
    used_seconds double precision not null,
    cost double precision,
    usage text not null,
    error text not null,
    answer text not null
);

create unique index runs_running_in_lane on runs (lane) where status = 'running';

create index runs_of_lane on runs (lane, status, priority, arrival);

create index runs_of_status on runs (status, priority, arrival);

create index runs_crashed on runs (priority, arrival) where status = 'queued' and crashes > 0;

create index runs_of_session on runs (session_id, status, priority, arrival);

create index runs_of_task on runs (task_id, arrival);

-- At most one row: the gateway that serves the database, as a process (see `ProcessIdentity`).
create table gateway (
    id bigint primary key check (id = 1),
    owner text not null,
    lease_until text not null
);

-- A Turn without its messages, apart from `runs`, whose rows change with every batch of events.
-- `version` is the format of the row and of its messages, `task_index` the number of the run's first
-- message, so that the messages can be read without the Turn.
create table checkpoints (
    run_id text primary key,
    version bigint not null,
    task_index bigint not null,
    turn text not null
);

-- The run configuration (number 0) and the messages of a Turn.
create table turn_log (
    run_id text not null,
    number bigint not null,
    message text not null,
    primary key (run_id, number)
);

-- Status: open, answered, expired, closed (the run ended). `audience` says who may answer.
create table questions (
    id text primary key,
    run_id text not null,
    task_id text not null,
    session_id text not null,
    principal text not null,
    chat text not null,
    audience text not null,
    status text not null,
    asked text not null,
    expires text not null,
    closed text,
    answer text,
    question text not null
);

create index questions_of_session on questions (session_id, status, asked);

create index questions_of_run on questions (run_id, status);

create index questions_of_chat on questions (chat, status, asked);

create index questions_by_age on questions (asked, id);

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

-- Tokens and cost (US dollars, null when the price is unknown) of a run for one model.
create table usage (
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

create index usage_of_session on usage (session_id);

-- Messages to send. Status: pending, sent, dead (given up), unconfirmed (given up, perhaps sent).
-- `failure` is why the last attempt failed, `error` why the run failed.
create table outbox (
    number integer primary key,
    key text not null unique,
    channel text not null,
    app text not null,
    chat_id text not null,
    reply_to text not null,
    run_id text not null,
    question_id text not null,
    stop_reason text,
    status text not null,
    attempts bigint not null,
    next_attempt text not null,
    created text not null,
    first_attempt text,
    settled text,
    remote_id text not null,
    failure text not null,
    error text not null,
    body text not null
);

create index outbox_pending on outbox (channel, app, chat_id, number) where status = 'pending';

create index outbox_dead on outbox (status, number) where status in ('dead', 'unconfirmed');

create index outbox_of_run on outbox (run_id);

create index outbox_questions on outbox (remote_id) where question_id <> '';

-- Which process shows a run in a channel: one writer per card. `closed` is 1 when it is finished.
create table run_displays (
    run_id text not null,
    channel text not null,
    owner text not null,
    lease_until text not null,
    last_position bigint not null,
    closed bigint not null,
    state text not null,
    primary key (run_id, channel)
);

create index run_displays_open on run_displays (channel, lease_until) where closed = 0;

-- Rules that people added by answering. `scope` is a session, a chat, or the tasks of a principal.
create table permission_rules (
    number integer primary key,
    scope text not null,
    rule text not null,
    principal text not null,
    via text not null,
    question_id text not null,
    created text not null,
    unique (scope, rule)
);

-- Roles given by pairing, besides those of the settings.
create table role_assignments (
    principal text primary key,
    name text not null,
    role text not null,
    via text not null,
    created text not null
);

create index role_assignments_by_age on role_assignments (created, principal);

-- Codes that give a role once. Only a hash of the code is stored.
create table pairing_codes (
    code_hash text primary key,
    role text not null,
    created text not null,
    expires text not null
);

create index pairing_codes_by_age on pairing_codes (expires);

-- Who did what. Entries stay when a session is deleted.
create table audit_entries (
    number integer primary key,
    at text not null,
    principal text not null,
    via text not null,
    action text not null,
    target text not null,
    detail text not null
);

create index audit_entries_of_action on audit_entries (action, at);

create index audit_entries_of_principal on audit_entries (principal, action, at);

-- `holder` is a session that uses an attachment, or the principal who uploaded it for a task. An
-- upload `expires`; for a session that is ''.
create table attachment_uses (
    sha256 text not null,
    holder text not null,
    expires text not null,
    primary key (sha256, holder)
);

create index attachment_uses_of_holder on attachment_uses (holder);

create index attachment_uploads on attachment_uses (expires) where expires <> '';

-- Files to remove: attachments by hash, workspaces by session. Stored before they are removed.
create table file_removals (
    kind text not null,
    name text not null,
    primary key (kind, name)
);

-- What the people of a chat chose for its coming tasks; '' leaves it to the settings.
create table chat_settings (
    chat text primary key,
    plan_review text not null,
    model text not null
);
