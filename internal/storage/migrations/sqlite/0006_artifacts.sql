-- Files that runs made for people. `newest` is 1 for the newest version of a name in its session.
-- `shared_run_id` is the run that shared it last: its end sends the file to the chat of the run.
-- `source` is the identity of the file that was stored, so that it is not read again while it is
-- unchanged; '' if it was not in the output folder. `search` is name and caption in lower case.

create table artifacts (
    id text primary key,
    session_id text not null,
    task_id text not null,
    run_id text not null,
    shared_run_id text not null,
    call_id text not null,
    team_id text not null,
    principal text not null,
    maker text not null,
    type text not null,
    version bigint not null,
    newest bigint not null,
    media_type text not null,
    sha256 text not null,
    size bigint not null,
    uri text not null,
    created text not null,
    favourite bigint not null,
    source text not null,
    name text not null,
    caption text not null,
    search text not null,
    unique (session_id, name, version)
);

-- With the columns that lists filter by, so that only the rows of a page are read.
create index artifacts_by_age on artifacts (
    created, id, newest, type, favourite, principal, search
);

create index artifacts_of_principal on artifacts (
    principal, created, id, newest, type, favourite, search
);

create index artifacts_of_session on artifacts (session_id, created, id);

create index artifacts_of_task on artifacts (task_id, created, id);

create index artifacts_of_run on artifacts (shared_run_id);

-- The files of an outgoing message, as JSON.
alter table outbox add column attachments text not null default '[]';
