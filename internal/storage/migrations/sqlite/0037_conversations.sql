-- The transcripts that programs have of their conversations, and the sessions that continue them.

create table conversations (
    principal text not null,
    transcript text not null,
    session_id text not null,
    run_id text not null,
    asks integer not null default 0,
    taken integer not null default 0,
    created text not null,
    primary key (principal, transcript, session_id)
);
create index conversations_of_session on conversations (session_id);
