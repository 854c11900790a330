-- What a channel with chats needs: which session a chat is in, what is to be sent to it, and who
-- shows which run there.

alter table sessions add column scope text not null default '';

create index sessions_of_scope on sessions (channel, scope, created, id);

create index inbox_accepted on inbox (channel, app, number) where status = 'accepted';

-- What was promised to a chat. status: pending, sent, dead (given up), doubtful (perhaps sent).
create table outbox (
    number integer primary key,
    key text not null unique,
    channel text not null,
    app text not null,
    chat_id text not null,
    reply_to text not null,
    run_id text not null,
    stop_reason text,
    status text not null,
    attempts bigint not null,
    next_try text not null,
    created text not null,
    first_tried text,
    settled text,
    remote_id text not null,
    fault text not null,
    error text not null,
    body text not null
);

create index outbox_pending on outbox (channel, app, chat_id, number) where status = 'pending';

create index outbox_dead on outbox (status, number) where status in ('dead', 'doubtful');

create index outbox_of_run on outbox (run_id);

-- Who shows a run at a door: one writer a card. closed is 1 when nothing more is to be shown.
create table showings (
    run_id text not null,
    door text not null,
    owner text not null,
    lease_until text not null,
    last_position bigint not null,
    closed bigint not null,
    state text not null,
    primary key (run_id, door)
);

create index showings_open on showings (door, lease_until) where closed = 0;
