-- An event is stored without what its columns and its run say: the envelope is made again when it
-- is read. `event_runs` has what the events of a run share. `session` is the number of the first
-- run of the session there; `ids` are the other ids of a run that another one created, as JSON,
-- '' if nobody did. Events that were stored before stay as they are, in `earlier_events`: a large
-- log need not be rewritten before the start.

alter table events rename to earlier_events;
alter index events_pkey rename to earlier_events_pkey;
alter index events_run_id_seq_key rename to earlier_events_run_id_seq_key;
alter index events_of_session rename to earlier_events_of_session;

create table event_runs (
    number bigint primary key,
    session bigint not null,
    session_id text collate "C" not null,
    task_id text collate "C" not null,
    run_id text collate "C" not null unique,
    ids text collate "C" not null
);

create index event_runs_of_session on event_runs (session_id);

-- `session` and `run` are numbers in `event_runs`; `node_id` and `payload` are JSON.
create table events (
    position bigint primary key,
    session bigint not null,
    run bigint not null,
    seq bigint not null,
    event text collate "C" not null,
    ts text collate "C" not null,
    node_id text collate "C",
    node_kind text collate "C",
    payload text collate "C" not null,
    unique (run, seq)
);

create index events_in_session on events (session, position);
