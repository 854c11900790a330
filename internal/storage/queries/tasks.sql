-- Statements for SQLite and PostgreSQL. `-- name:` names the statement below it.
-- $1, $2 … are its values in order.

-- name: insert_task
insert into tasks (
    id, session_id, kind, lane, parent_task_id, team_id, principal, idempotency_key, status,
    stop_reason, created, updated, origin, spec, attachments, instruction, prompt, depends_on,
    reports
) values (
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11, $12, $13, $14, $15, $16, $17, $18
);

-- name: task
select id, session_id, kind, lane, instruction, origin, spec, status, created, attachments,
    parent_task_id, stop_reason, team_id, prompt, feedback, depends_on, reports
from tasks where id = $1;

-- name: task_by_key
select id, session_id, kind, lane, instruction, origin, spec, status, created, attachments,
    parent_task_id, stop_reason, team_id, prompt, feedback, depends_on, reports
from tasks where principal = $1 and idempotency_key = $2;

-- name: tasks_page
select id, session_id, kind, lane, instruction, origin, spec, status, created, attachments,
    parent_task_id, stop_reason, team_id, prompt, feedback, depends_on, reports
from tasks
where (created, id) < ($1, $2) and (cast($3 as text) is null or status = $3)
    and (cast($5 as text) is null or $5 = case
        when status in ('completed', 'failed', 'cancelled') then 'done'
        when status = 'waiting' and stop_reason <> 'await_tasks' then 'needs_me'
        else 'running' end)
    and ($6 = 1 or parent_task_id is null)
order by created desc, id desc limit $4;

-- name: tasks_page_of_principal
select id, session_id, kind, lane, instruction, origin, spec, status, created, attachments,
    parent_task_id, stop_reason, team_id, prompt, feedback, depends_on, reports
from tasks
where principal = $7 and (created, id) < ($1, $2) and (cast($3 as text) is null or status = $3)
    and (cast($5 as text) is null or $5 = case
        when status in ('completed', 'failed', 'cancelled') then 'done'
        when status = 'waiting' and stop_reason <> 'await_tasks' then 'needs_me'
        else 'running' end)
    and ($6 = 1 or parent_task_id is null)
order by created desc, id desc limit $4;

-- name: tasks_page_of_session
select id, session_id, kind, lane, instruction, origin, spec, status, created, attachments,
    parent_task_id, stop_reason, team_id, prompt, feedback, depends_on, reports
from tasks
where session_id = $7 and (created, id) < ($1, $2) and (cast($3 as text) is null or status = $3)
    and (cast($5 as text) is null or $5 = case
        when status in ('completed', 'failed', 'cancelled') then 'done'
        when status = 'waiting' and stop_reason <> 'await_tasks' then 'needs_me'
        else 'running' end)
    and ($6 = 1 or parent_task_id is null)
    and (cast($8 as text) is null or principal = $8)
order by created desc, id desc limit $4;

-- name: tasks_page_of_parent
select id, session_id, kind, lane, instruction, origin, spec, status, created, attachments,
    parent_task_id, stop_reason, team_id, prompt, feedback, depends_on, reports
from tasks
where parent_task_id = $7 and (created, id) < ($1, $2) and (cast($3 as text) is null or status = $3)
    and (cast($5 as text) is null or $5 = case
        when status in ('completed', 'failed', 'cancelled') then 'done'
        when status = 'waiting' and stop_reason <> 'await_tasks' then 'needs_me'
        else 'running' end)
    and ($6 = 1 or parent_task_id is null)
    and (cast($8 as text) is null or principal = $8)
order by created desc, id desc limit $4;

-- name: tasks_not_completed
select id, session_id, kind, lane, instruction, origin, spec, status, created, attachments,
    parent_task_id, stop_reason, team_id, prompt, feedback, depends_on, reports
from tasks
where status = $3 and status <> 'completed' and (created, id) < ($1, $2)
    and (cast($5 as text) is null or $5 = case
        when status in ('failed', 'cancelled') then 'done'
        when status = 'waiting' and stop_reason <> 'await_tasks' then 'needs_me'
        else 'running' end)
    and ($6 = 1 or parent_task_id is null)
order by created desc, id desc limit $4;

-- name: tasks_not_completed_of_principal
select id, session_id, kind, lane, instruction, origin, spec, status, created, attachments,
    parent_task_id, stop_reason, team_id, prompt, feedback, depends_on, reports
from tasks
where principal = $7 and status = $3 and status <> 'completed' and (created, id) < ($1, $2)
    and (cast($5 as text) is null or $5 = case
        when status in ('failed', 'cancelled') then 'done'
        when status = 'waiting' and stop_reason <> 'await_tasks' then 'needs_me'
        else 'running' end)
    and ($6 = 1 or parent_task_id is null)
order by created desc, id desc limit $4;

-- name: tasks_not_completed_of_session
select id, session_id, kind, lane, instruction, origin, spec, status, created, attachments,
    parent_task_id, stop_reason, team_id, prompt, feedback, depends_on, reports
from tasks
where session_id = $7 and status = $3 and status <> 'completed' and (created, id) < ($1, $2)
    and (cast($5 as text) is null or $5 = case
        when status in ('failed', 'cancelled') then 'done'
        when status = 'waiting' and stop_reason <> 'await_tasks' then 'needs_me'
        else 'running' end)
    and ($6 = 1 or parent_task_id is null)
    and (cast($8 as text) is null or principal = $8)
order by created desc, id desc limit $4;

-- name: task_summary
select tasks.id, runs.id, runs.started, runs.ended, runs.subtask,
    (select substr(above.instruction, 1, 200) from tasks above
        where above.id = tasks.parent_task_id),
    (select count(distinct artifacts.name) from artifacts where artifacts.task_id = tasks.id)
from tasks join runs on runs.task_id = tasks.id
where tasks.id = $1 order by runs.arrival desc limit 1;

-- name: end_of_task
select $1, payload from events
where run = (
        select number from event_runs
        where run_id = (select id from runs where task_id = $1 order by arrival desc limit 1)
    ) and event = $2
order by seq desc limit 1;

-- name: task_cursor
select created, id from tasks
where id = $1 and (cast($2 as text) is null or principal = $2);

-- name: replace_task_input
update tasks set instruction = $2, prompt = $3, attachments = $4 where id = $1;

-- name: set_task_attachments
update tasks set attachments = $2 where id = $1;

-- name: rated_tasks
select id, session_id, kind, lane, instruction, origin, spec, status, created, attachments,
    parent_task_id, stop_reason, team_id, prompt, feedback, depends_on, reports
from tasks where feedback <> 'null' and created > '' order by created desc, id desc limit $1;

-- name: set_task_feedback
update tasks set feedback = $2 where id = $1;

-- name: set_task_status
update tasks set status = $2, stop_reason = $3, updated = $4 where id = $1;

-- name: request_result
select result from request_results
where principal = $1 and command = $2 and idempotency_key = $3;

-- name: insert_request_result
insert into request_results (principal, command, idempotency_key, session_id, created, result)
values ($1, $2, $3, $4, $5, $6);

-- name: replace_request_result
insert into request_results (principal, command, idempotency_key, session_id, created, result)
values ($1, $2, $3, $4, $5, $6)
on conflict (principal, command, idempotency_key) do update
set session_id = excluded.session_id, created = excluded.created, result = excluded.result;

-- name: delete_request_results_of_session
delete from request_results where session_id = $1;
