-- Statements for SQLite and PostgreSQL. `-- name:` names the statement below it.
-- $1, $2 … are its values in order. Rows that retention may remove are listed by number, with
-- their time and 1 if something needs them regardless of their age.

-- name: aging_earlier_events
select position, ts, case
    when exists (
        select 1 from runs
        where runs.id = earlier_events.run_id and runs.status in ('queued', 'running', 'waiting')
    ) then 1
    when exists (select 1 from checkpoints where checkpoints.run_id = earlier_events.run_id) then 1
    when exists (
        select 1 from sessions
        where sessions.id = earlier_events.session_id and sessions.pinned = 1
    ) then 1
    else 0 end
from earlier_events where position > $1 order by position limit $2;

-- name: aging_events
select position, ts, case
    when exists (
        select 1 from runs
        where runs.id = event_runs.run_id and runs.status in ('queued', 'running', 'waiting')
    ) then 1
    when exists (select 1 from checkpoints where checkpoints.run_id = event_runs.run_id) then 1
    when exists (
        select 1 from sessions
        where sessions.id = event_runs.session_id and sessions.pinned = 1
    ) then 1
    else 0 end
from events join event_runs on number = run
where position > $1 order by position limit $2;

-- name: prune_earlier_event
delete from earlier_events where position = $1;

-- name: prune_event
delete from events where position = $1;

-- name: record_pruned_events
update event_log set pruned = $1 where pruned < $1;

-- name: aging_inbox
select number, received, case when status in ('handled', 'withdrawn') then 0 else 1 end
from inbox where number > $1 order by number limit $2;

-- name: prune_inbox
delete from inbox where number = $1;

-- name: aging_outbox
select number, created, case when status in ('sent', 'dropped') then 0 else 1 end
from outbox where number > $1 order by number limit $2;

-- name: prune_outbox
delete from outbox where number = $1;

-- name: aging_audit_entries
select number, at, 0 from audit_entries where number > $1 order by number limit $2;

-- name: prune_audit_entry
delete from audit_entries where number = $1;

-- name: aging_usage
select number, recorded, 1 - summed from usage where number > $1 order by number limit $2;

-- name: idle_sessions
select updated, id from sessions
where updated < $1 and (updated, id) > ($2, $3) and pinned = 0
    and (cast($4 as bigint) is null or one_shot = $4)
    and not exists (
        select 1 from runs
        where runs.session_id = sessions.id and runs.status in ('queued', 'running', 'waiting')
    )
order by updated, id limit $5;

-- name: session_is_idle
select id from sessions
where id = $1 and updated < $2 and pinned = 0
    and not exists (
        select 1 from runs
        where runs.session_id = sessions.id and runs.status in ('queued', 'running', 'waiting')
    );

-- name: prune_earlier_events_of_session
delete from earlier_events where position in (
    select position from earlier_events where session_id = $1 order by position limit $2
) returning position;

-- name: prune_events_of_session
delete from events where position in (
    select position from events
    where session = (select session from event_runs where session_id = $1 limit 1)
    order by position limit $2
) returning position;

-- name: prune_messages_of_session
delete from messages where session_id = $1 and number in (
    select number from messages where session_id = $1 order by number limit $2
) returning number;

-- name: prune_turn_log_of_run
delete from turn_log where run_id = $1 and number in (
    select number from turn_log where run_id = $1 order by number limit $2
) returning number;

-- name: next_turn_log_of_session
select runs.id from runs
where session_id = $1 and exists (select 1 from turn_log where turn_log.run_id = runs.id)
limit 1;
