-- People in the loop: whose question it is and where it is asked, what people allowed for longer,
-- who may do what, and who did what.

alter table questions add column task_id text not null default '';

alter table questions add column principal text not null default '';

alter table questions add column chat text not null default '';

alter table questions add column who text not null default 'operators';

create index questions_of_chat on questions (chat, status, asked);

create index questions_by_age on questions (asked, id);

-- A message of the outbox may be a question, or the news that it is closed.
alter table outbox add column question_id text not null default '';

-- Rules that people wrote: in a session, a chat, or for a principal's tasks (`place` says which).
create table grants (
    number integer primary key,
    place text not null,
    rule text not null,
    principal text not null,
    via text not null,
    question_id text not null,
    created text not null,
    unique (place, rule)
);

-- People of channels who were given rights besides those of the settings.
create table principals (
    id text primary key,
    name text not null,
    role text not null,
    via text not null,
    created text not null
);

create index principals_by_age on principals (created, id);

-- Codes that give a right once. Only a hash of a code is kept.
create table pairings (
    code_hash text primary key,
    role text not null,
    created text not null,
    expires text not null
);

create index pairings_by_age on pairings (expires);

-- Who did what; nothing is deleted from it with a session.
create table audit (
    number integer primary key,
    at text not null,
    principal text not null,
    via text not null,
    action text not null,
    target text not null,
    detail text not null
);

create index audit_of_action on audit (action, at);

create index audit_of_principal on audit (principal, action, at);
