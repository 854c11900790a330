-- Statements for SQLite and PostgreSQL. `-- name:` names the statement below it.
-- $1, $2 … are its values in order.

-- name: runs_of_root
select id, task_id, session_id, lane, status, fence, last_seq, attempt, crashes,
    parent_run_id, stop_reason, stop_request, owner, terminal, usage, cost, answer, error,
    used_seconds, subtask, started, ended
from runs where root_task_id = $1 order by arrival;

-- name: runs_of_parent
select id, task_id, session_id, lane, status, fence, last_seq, attempt, crashes,
    parent_run_id, stop_reason, stop_request, owner, terminal, usage, cost, answer, error,
    used_seconds, subtask, started, ended
from runs where parent_run_id = $1 order by arrival;

-- name: unreported_tasks
select tasks.id from tasks join runs on runs.task_id = tasks.id
where runs.parent_run_id = $1 and tasks.reported = 0
    and tasks.status in ('completed', 'failed', 'cancelled')
order by runs.arrival;

-- name: mark_task_reported
update tasks set reported = 1 where id = $1;

-- name: cost_of_tree
select coalesce(sum(usage.cost), 0) from usage
where usage.run_id in (select id from runs where root_task_id = $1 or task_id = $1);

-- name: insert_task_dependency
insert into task_dependencies (task_id, depends_on) values ($1, $2);

-- name: delete_task_dependencies
delete from task_dependencies where depends_on = $1 returning task_id;

-- name: unblock_run
update runs set blocked_by = blocked_by - 1
where task_id = $1 and blocked_by > 0 returning id;

-- name: insert_task_wait
insert into task_waits (run_id, call_id, task_id, any_of) values ($1, $2, $3, $4)
on conflict (run_id, call_id, task_id) do nothing;

-- name: delete_task_waits_of_run
delete from task_waits where run_id = $1;

-- name: runs_waiting_for_task
select distinct run_id from task_waits where task_id = $1;

-- name: settled_waits
select call_id from task_waits join tasks on tasks.id = task_waits.task_id
where task_waits.run_id = $1
group by call_id
having sum(case when tasks.status in ('completed', 'failed', 'cancelled') then 0 else 1 end) = 0
    or (max(any_of) = 1
        and sum(case when tasks.status in ('completed', 'failed', 'cancelled') then 1 else 0 end)
            > 0);

-- name: runs_past_wait
select id, task_id, session_id, lane, status, fence, last_seq, attempt, crashes,
    parent_run_id, stop_reason, stop_request, owner, terminal, usage, cost, answer, error,
    used_seconds, subtask, started, ended
from runs where wait_until is not null and wait_until <= $1 and status = 'waiting'
order by wait_until limit 100;

-- name: move_task_to_lane
update tasks set kind = 'background', lane = $1 where id = $1 returning id;

-- name: move_run_to_lane
update runs set lane = task_id
where id = $1 and status in ('queued', 'running', 'waiting') returning id;

-- name: delete_task_waits_of_session
delete from task_waits where run_id in (select id from runs where session_id = $1);

-- name: delete_task_dependencies_of_session
delete from task_dependencies where task_id in (select id from tasks where session_id = $1);

-- name: count_ended_of_root
select count(*) from runs
where root_task_id = $1 and status in ('completed', 'failed', 'cancelled');
