-- Statements for SQLite and PostgreSQL. `-- name:` names the statement below it.
-- $1, $2 … are its values in order.

-- name: reserve_seqs
update runs set last_seq = last_seq + $3, used_seconds = coalesce($4, used_seconds)
where id = $1 and fence = $2 and status = 'running'
returning last_seq, stop_request;

-- name: reserve_seqs_of_idle_run
update runs set last_seq = last_seq + $2
where id = $1 and status in ('queued', 'waiting')
returning last_seq;

-- name: take_positions
update event_log set head = head + $1
returning head,
    (select number from event_runs where run_id = $2),
    (select session from event_runs where run_id = $2);

-- name: insert_event_run
insert into event_runs (number, session, session_id, task_id, run_id, ids) values (
    coalesce((select max(number) from event_runs), 0) + 1,
    coalesce(
        (select session from event_runs where session_id = $1 limit 1),
        (select max(number) from event_runs) + 1,
        1
    ),
    $1, $2, $3, $4
)
returning number, session;

-- name: insert_event
insert into events (
    position, session, run, seq, event, ts, node_id, node_kind, payload
) values ($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: event_runs
select number, session_id, run_id, task_id, ids from event_runs where number in (
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16
);

-- Events in their two forms. One that was stored with its whole envelope has no `run`, its session
-- and run in place of time and node, and the envelope in place of the payload. Its position is
-- below those of all others.

-- name: events_after
select position, cast(null as bigint) as run, seq, event, session_id as ts, run_id as node_id,
    '' as node_kind, envelope as payload
from earlier_events where position > $1
union all
select position, run, seq, event, ts, node_id, node_kind, payload
from events where position > $1
order by position limit $2;

-- name: earlier_session_events_after
select position, cast(null as bigint) as run, seq, event, session_id as ts, run_id as node_id,
    '' as node_kind, envelope as payload
from earlier_events where session_id = $1 and position > $2
order by position limit $3;

-- name: session_events_after
select position, run, seq, event, ts, node_id, node_kind, payload
from events
where session = (select session from event_runs where session_id = $1 limit 1) and position > $2
order by position limit $3;

-- name: session_positions_before
select position from earlier_events where session_id = $1 and position < $2
union all
select position from events
where session = (select session from event_runs where session_id = $1 limit 1) and position < $2
order by position desc limit $3;

-- name: events_of_run
select position, cast(null as bigint) as run, seq, event, session_id as ts, run_id as node_id,
    '' as node_kind, envelope as payload
from earlier_events where run_id = $1 and (cast($2 as text) is null or event = $2)
union all
select position, run, seq, event, ts, node_id, node_kind, payload
from events
where run = (select number from event_runs where run_id = $1)
    and (cast($2 as text) is null or event = $2)
order by seq;

-- name: record_gap
insert into event_gaps (before, after) select head, head + $1 from event_log where head > 0;

-- name: skip_positions
update event_log set head = head + $1 where head > 0;

-- name: gap_around
select before from event_gaps where before < $1 and after > $1 order by before desc limit 1;

-- name: event_log_bounds
select epoch, head,
    coalesce(
        (select min(position) from earlier_events), (select min(position) from events), head + 1
    ),
    pruned
from event_log;

-- name: event_readers
select name, position from event_readers;

-- name: save_event_reader
insert into event_readers (name, position) values ($1, $2)
on conflict (name) do update set position = excluded.position
where event_readers.position < excluded.position;

-- name: delete_event_reader
delete from event_readers where name = $1;
