-- Statements for SQLite and PostgreSQL. `-- name:` names the statement below it.
-- $1, $2 … are its values in order.

-- name: insert_run
insert into runs (
    id, task_id, session_id, lane, status, priority, arrival, fence, last_seq, attempt, crashes,
    not_before, owner, lease_until, terminal, parent_run_id, created, usage, error, answer,
    used_seconds, subtask, root_task_id, call_group, max_parallel, blocked_by, person, max_running
) values (
    $1, $2, $3, $4, 'queued', $14, (select arrivals + 1 from event_log), $5, $6, $7, 0, '', $8, $9,
    $10, $11, $12, $13, '', '', 0, $15, $16, $17, $18, $19, $20, $21
);

-- name: count_arrival
update event_log set arrivals = arrivals + 1;

-- name: run
select id, task_id, session_id, lane, status, fence, last_seq, attempt, crashes,
    parent_run_id, stop_reason, stop_request, owner, terminal, usage, cost, answer, error,
    used_seconds, subtask, started, ended
from runs where id = $1;

-- name: run_of_task
select id, task_id, session_id, lane, status, fence, last_seq, attempt, crashes,
    parent_run_id, stop_reason, stop_request, owner, terminal, usage, cost, answer, error,
    used_seconds, subtask, started, ended
from runs where task_id = $1 order by arrival desc limit 1;

-- name: claim_run
update runs set status = 'running', fence = fence + 1, attempt = attempt + 1, owner = $2,
    lease_until = $3, started = coalesce(started, $4), told_host = '', last_seq = last_seq + $6
where id = $1 and status = 'queued' and (terminal = 0 or owner = $2) and not_before <= $4
    and (
        $5 = '' or coalesce((select host from sessions where id = runs.session_id), '') in ('', $5)
    )
    and not exists (
        select 1 from runs as other where other.lane = runs.lane and other.status = 'running'
    )
    and not exists (
        select 1 from runs as other where other.lane = runs.lane and other.status = 'queued'
            and (other.priority, other.arrival) < (runs.priority, runs.arrival)
    )
    and blocked_by = 0
    and (
        root_task_id is null or (
            select count(*) from runs as other
            where other.root_task_id = runs.root_task_id and other.status = 'running'
        ) < 8
    )
    and (
        call_group is null or (
            select count(*) from runs as other
            where other.call_group = runs.call_group and other.status = 'running'
        ) < max_parallel
    )
    and (
        person = '' or (
            select count(*) from runs as other
            where other.person = runs.person and other.status = 'running'
        ) < max_running
    )
returning id, task_id, session_id, lane, status, fence, last_seq, attempt, crashes,
    parent_run_id, stop_reason, stop_request, owner, terminal, usage, cost, answer, error,
    used_seconds, subtask, started, ended;

-- name: renew_leases
update runs set lease_until = $2
where status in ('queued', 'running', 'waiting') and owner = $1 returning id;

-- name: ready_runs
select id, task_id, session_id, lane, status, fence, last_seq, attempt, crashes,
    parent_run_id, stop_reason, stop_request, owner, terminal, usage, cost, answer, error,
    used_seconds, subtask, started, ended
from runs where status = 'queued' and crashes = 0 and (terminal = 0 or owner = $1)
    and terminal >= $4 and not_before <= $2
    and (
        $5 = '' or coalesce((select host from sessions where id = runs.session_id), '') in ('', $5)
    )
    and not exists (
        select 1 from runs as other where other.lane = runs.lane and other.status = 'running'
    )
    and not exists (
        select 1 from runs as other where other.lane = runs.lane and other.status = 'queued'
            and (other.priority, other.arrival) < (runs.priority, runs.arrival)
    )
    and blocked_by = 0
    and (
        root_task_id is null or (
            select count(*) from runs as other
            where other.root_task_id = runs.root_task_id and other.status = 'running'
        ) < 8
    )
    and (
        call_group is null or (
            select count(*) from runs as other
            where other.call_group = runs.call_group and other.status = 'running'
        ) < max_parallel
    )
    and (
        person = '' or (
            select count(*) from runs as other
            where other.person = runs.person and other.status = 'running'
        ) < max_running
    )
order by priority, arrival limit $3;

-- name: next_runs_of_people
with recursive people (person) as (
    select (select person from runs where status = 'queued' order by person limit 1)
    union all
    select (
        select person from runs
        where status = 'queued' and person > people.person order by person limit 1
    )
    from people where people.person is not null
)
select id, task_id, session_id, lane, status, fence, last_seq, attempt, crashes,
    parent_run_id, stop_reason, stop_request, owner, terminal, usage, cost, answer, error,
    used_seconds, subtask, started, ended
from people join runs on runs.id = (
    select first.id from runs as first
    where first.status = 'queued' and first.person = people.person and first.crashes = 0
        and (first.terminal = 0 or first.owner = $1) and first.not_before <= $2
        and (
            $4 = ''
            or coalesce((select host from sessions where id = first.session_id), '') in ('', $4)
        )
        and not exists (
            select 1 from runs as other where other.lane = first.lane and other.status = 'running'
        )
        and not exists (
            select 1 from runs as other where other.lane = first.lane and other.status = 'queued'
                and (other.priority, other.arrival) < (first.priority, first.arrival)
        )
        and first.blocked_by = 0
        and (
            first.root_task_id is null or (
                select count(*) from runs as other
                where other.root_task_id = first.root_task_id and other.status = 'running'
            ) < 8
        )
        and (
            first.call_group is null or (
                select count(*) from runs as other
                where other.call_group = first.call_group and other.status = 'running'
            ) < first.max_parallel
        )
        and (
            first.person = '' or (
                select count(*) from runs as other
                where other.person = first.person and other.status = 'running'
            ) < first.max_running
        )
    order by first.priority, first.arrival limit 1
)
order by
    (
        select count(*) from runs as other
        where other.person = runs.person and other.status = 'running'
    ),
    priority,
    (
        select coalesce(max(other.started), '') from runs as other
        where other.person = runs.person and other.person <> ''
    ),
    arrival
limit $3;

-- name: count_new_runs_of_person
select count(*) from runs where status = 'queued' and person = $1 and priority = 1;

-- name: place_in_queue
with recursive people (person) as (
    select (select person from runs where status = 'queued' order by person limit 1)
    union all
    select (
        select person from runs
        where status = 'queued' and person > people.person order by person limit 1
    )
    from people where people.person is not null
), own (person, place) as (
    select person, (
        select count(*) from runs as other
        where other.status = 'queued' and other.person = runs.person
            and (other.priority, other.arrival) <= (runs.priority, runs.arrival)
    )
    from runs
    where id = $1 and status = 'queued' and not exists (
        select 1 from runs as other
        where other.lane = runs.lane and other.status = 'running'
    )
    and not exists (
        select 1 from runs as other where other.lane = runs.lane and other.status = 'queued'
            and (other.priority, other.arrival) < (runs.priority, runs.arrival)
    )
)
select own.place + coalesce((
    select cast(
        sum(case when counted.waiting < own.place then counted.waiting else own.place end)
        as bigint
    )
    from (
        select (
            select count(*) from runs as other
            where other.status = 'queued' and other.person = people.person
        ) as waiting
        from people where people.person <> own.person
    ) as counted
), 0)
from own;

-- name: queued_runs
select id from runs where status = 'queued' and terminal = 0 limit $1;

-- name: ready_crashed_runs
select id, task_id, session_id, lane, status, fence, last_seq, attempt, crashes,
    parent_run_id, stop_reason, stop_request, owner, terminal, usage, cost, answer, error,
    used_seconds, subtask, started, ended
from runs where status = 'queued' and crashes > 0 and (terminal = 0 or owner = $1)
    and not_before <= $2 and crashes <> $4
    and (
        $3 = '' or coalesce((select host from sessions where id = runs.session_id), '') in ('', $3)
    )
    and not exists (
        select 1 from runs as other where other.lane = runs.lane and other.status = 'running'
    )
    and not exists (
        select 1 from runs as other where other.lane = runs.lane and other.status = 'queued'
            and (other.priority, other.arrival) < (runs.priority, runs.arrival)
    )
    and blocked_by = 0
    and (
        root_task_id is null or (
            select count(*) from runs as other
            where other.root_task_id = runs.root_task_id and other.status = 'running'
        ) < 8
    )
    and (
        call_group is null or (
            select count(*) from runs as other
            where other.call_group = runs.call_group and other.status = 'running'
        ) < max_parallel
    )
    and (
        person = '' or (
            select count(*) from runs as other
            where other.person = runs.person and other.status = 'running'
        ) < max_running
    )
order by priority, arrival limit 1;

-- name: held_runs
select id, task_id, session_id, lane, status, fence, last_seq, attempt, crashes,
    parent_run_id, stop_reason, stop_request, owner, terminal, usage, cost, answer, error,
    used_seconds, subtask, started, ended, lease_until
from runs
where status = 'running' or (status = 'queued' and terminal = 1)
order by priority, arrival;

-- name: owned_runs
select id, task_id, session_id, lane, status, fence, last_seq, attempt, crashes,
    parent_run_id, stop_reason, stop_request, owner, terminal, usage, cost, answer, error,
    used_seconds, subtask, started, ended
from runs where status = 'running' and owner = $1 order by priority, arrival;

-- name: active_run_of_session
select id, task_id, session_id, lane, status, fence, last_seq, attempt, crashes,
    parent_run_id, stop_reason, stop_request, owner, terminal, usage, cost, answer, error,
    used_seconds, subtask, started, ended
from runs where id = coalesce(
    (
        select id from runs where session_id = $1 and status = 'running' and lane = $1
        order by priority, arrival limit 1
    ),
    (
        select id from runs where session_id = $1 and status = 'waiting' and lane = $1
            and stop_reason = 'await_tasks'
        order by priority, arrival limit 1
    ),
    (
        select id from runs where session_id = $1 and status = 'queued' and lane = $1
        order by priority, arrival limit 1
    )
);

-- name: runs_failed_after_crashes
select id, task_id, session_id, lane, status, fence, last_seq, attempt, crashes,
    parent_run_id, stop_reason, stop_request, owner, terminal, usage, cost, answer, error,
    used_seconds, subtask, started, ended
from runs
where status = 'failed' and crashes > 0 and crashes >= $1 and subtask is null
order by ended desc limit $2;

-- name: forget_crashes
update runs set crashes = 0 where id = $1 and status = 'failed' and crashes > 0 returning id;

-- name: unfinished_runs_of_session
select id, task_id, session_id, lane, status, fence, last_seq, attempt, crashes,
    parent_run_id, stop_reason, stop_request, owner, terminal, usage, cost, answer, error,
    used_seconds, subtask, started, ended
from runs where session_id = $1 and status in ('queued', 'running', 'waiting') order by arrival;

-- name: release_lane
update runs set status = $3, priority = 0, attempt = 0, stop_reason = $4, wait_until = $5,
    owner = case when terminal = 1 then owner else '' end
where id = $1 and fence = $2 and status = 'running'
returning id;

-- name: requeue_failed_run
update runs set status = 'queued', priority = 0, crashes = crashes + $3, not_before = $4,
    owner = case when terminal = 1 then owner else '' end
where id = $1 and fence = $2 and status = 'running'
returning id;

-- name: queue_waiting_run
update runs set status = 'queued', priority = 0, attempt = 0, crashes = 0, not_before = '',
    stop_reason = null, wait_until = null,
    owner = case when terminal = 1 and lease_until >= $2 then owner else '' end,
    terminal = case when terminal = 1 and lease_until >= $2 then 1 else 0 end
where id = $1 and status = 'waiting'
returning id;

-- name: release_run
update runs set terminal = 0, owner = ''
where id = $1 and status in ('queued', 'waiting') and ($2 = '' or owner = $2)
returning id;

-- name: adopt_run
update runs set terminal = 1, owner = $2, lease_until = $3
where id = $1 and status = 'queued' and terminal = 0
returning id;

-- name: request_stop
update runs set stop_request = coalesce(stop_request, $2)
where id = $1 and status = 'running' returning id;

-- name: stop_requests
select id, stop_request from runs
where status = 'running' and owner = $1 and stop_request is not null order by priority, arrival;

-- name: end_run
update runs set status = $3, stop_reason = $4, usage = $5, cost = $6, answer = $7, error = $8,
    ended = $9
where id = $1 and fence = $2 and status in ('queued', 'running', 'waiting')
returning id;

-- name: upsert_checkpoint
insert into checkpoints (run_id, version, task_index, turn) values ($1, $2, $3, $4)
on conflict (run_id) do update set version = excluded.version, task_index = excluded.task_index,
    turn = excluded.turn;

-- name: reset_attempts
update runs set attempt = 1, crashes = 0 where id = $1;

-- name: reset_used_seconds
update runs set used_seconds = 0 where id = $1;

-- name: truncate_turn_log
delete from turn_log where run_id = $1 and number >= $2;

-- name: insert_turn_message
insert into turn_log (run_id, number, message) values ($1, $2, $3);

-- name: checkpoint
select version, task_index, turn from checkpoints where run_id = $1;

-- name: turn_messages
select message from turn_log where run_id = $1 order by number;

-- name: delete_checkpoint
delete from checkpoints where run_id = $1;
