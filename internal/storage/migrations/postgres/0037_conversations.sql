-- The transcripts that programs have of their conversations, and the sessions that continue them.

create table conversations (
    principal text collate "C" not null,
    transcript text collate "C" not null,
    session_id text collate "C" not null,
    run_id text collate "C" not null,
    asks bigint not null default 0,
    taken bigint not null default 0,
    created text collate "C" not null,
    primary key (principal, transcript, session_id)
);
create index conversations_of_session on conversations (session_id);
