-- Statements for SQLite and PostgreSQL. `-- name:` names the statement below it.
-- $1, $2 … are its values in order.

-- name: insert_session
insert into sessions (
    id, channel, owner, created, updated, title, scope, one_shot, named, forked_from,
    permission_mode, plan_review
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- name: session
select id, title, channel, owner, created, updated, scope, pinned, archived, one_shot, ended,
    seen, workspace, forked_from, permission_mode, plan_review
from sessions where id = $1;

-- name: newest_session
select id, title, channel, owner, created, updated, scope, pinned, archived, one_shot, ended,
    seen, workspace, forked_from, permission_mode, plan_review
from sessions
where owner = $1 and channel = $2 order by updated desc, id desc limit 1;

-- name: current_session
select id, title, channel, owner, created, updated, scope, pinned, archived, one_shot, ended,
    seen, workspace, forked_from, permission_mode, plan_review
from sessions
where channel = $1 and scope = $2 order by created desc, id desc limit 1;

-- name: sessions_page
select id, title, channel, owner, created, updated, scope, pinned, archived, one_shot, ended,
    seen, workspace, forked_from, permission_mode, plan_review,
    (select case when tasks.stop_reason = 'await_tasks' and not exists (
            select 1 from questions
            where questions.session_id = tasks.session_id and questions.status = 'open'
        ) then 'running' else tasks.status end
     from tasks where tasks.id = sessions.last_task_id),
    task_count, last_task_id,
    (select tasks.stop_reason from tasks where tasks.id = sessions.last_task_id)
from sessions
where (pinned, updated, id) < ($1, $2, $3)
    and (cast($4 as text) is null or channel = $4)
    and archived between coalesce($5, 0) and coalesce($5, 1)
    and (cast($6 as bigint) is null or pinned = $6)
    and one_shot between coalesce($7, 0) and coalesce($7, 1)
order by pinned desc, updated desc, id desc limit $8;

-- name: sessions_page_of_owner
select id, title, channel, owner, created, updated, scope, pinned, archived, one_shot, ended,
    seen, workspace, forked_from, permission_mode, plan_review,
    (select case when tasks.stop_reason = 'await_tasks' and not exists (
            select 1 from questions
            where questions.session_id = tasks.session_id and questions.status = 'open'
        ) then 'running' else tasks.status end
     from tasks where tasks.id = sessions.last_task_id),
    task_count, last_task_id,
    (select tasks.stop_reason from tasks where tasks.id = sessions.last_task_id)
from sessions
where owner = $8 and (pinned, updated, id) < ($1, $2, $3)
    and (cast($4 as text) is null or channel = $4)
    and archived between coalesce($5, 0) and coalesce($5, 1)
    and (cast($6 as bigint) is null or pinned = $6)
    and one_shot between coalesce($7, 0) and coalesce($7, 1)
order by pinned desc, updated desc, id desc limit $9;

-- name: text_found
select instruction from tasks where session_id = $1 and lower(instruction) like lower($2) escape '\'
union all
select answer from runs where session_id = $1 and lower(answer) like lower($2) escape '\'
limit 1;

-- name: session_cursor
select pinned, updated, id from sessions
where id = $1 and (cast($2 as text) is null or owner = $2);

-- name: rename_session
update sessions set title = $2, updated = $3, named = 1 where id = $1 returning id;

-- name: retitle_session
update sessions set title = $3 where id = $1 and title = $2 and named = 0;

-- name: name_session
update sessions set title = $2, named = 1 where id = $1 and named = 0 returning id;

-- name: session_is_named
select named from sessions where id = $1;

-- name: mark_session
update sessions set pinned = coalesce($2, pinned), archived = coalesce($3, archived),
    seen = coalesce($4, seen)
where id = $1;

-- name: add_session_task
update sessions set updated = case when updated < $2 then $2 else updated end, last_task_id = $3,
    task_count = task_count + 1, workspace = $4, title = case when title = '' then $5 else title end,
    one_shot = case when $6 = 1 then one_shot else 0 end, permission_mode = $7, plan_review = $8
where id = $1;

-- name: touch_session
update sessions set updated = $2 where id = $1 and updated < $2;

-- name: end_session_run
update sessions set updated = case when updated < $2 then $2 else updated end,
    ended = case when ended < $2 then $2 else ended end
where id = $1;

-- name: insert_message
insert into messages (session_id, number, run_id, created, kind, message)
select $1, coalesce(max(number), 0) + 1, $2, $3, $4, $5 from messages where session_id = $1;

-- name: copy_messages
insert into messages (session_id, number, run_id, created, kind, message)
select $2, number, run_id, created, kind, message from messages
where session_id = $1 and number <= $3;

-- name: messages_of_run
select min(number), max(number) from messages where session_id = $1 and run_id = $2;

-- name: messages_before
select number, run_id, kind, message, created from messages
where session_id = $1 and number < $2 order by number desc limit $3;

-- name: messages_from
select number, run_id, kind, message, created from messages
where session_id = $1 and number >= $2 order by number desc limit $3;

-- name: words_before
select number, run_id, kind, message, created from messages
where session_id = $1 and kind <> 'exchange' and number < $2 order by number desc limit $3;

-- name: last_message_of_kind
select number, run_id, kind, message, created from messages
where session_id = $1 and kind <> 'exchange' and number < $2 and kind = $3
order by number desc limit 1;

-- name: delete_session
delete from sessions where id = $1
    and not exists (
        select 1 from runs where session_id = $1 and status in ('queued', 'running', 'waiting')
    )
returning owner;

-- name: delete_turn_logs_of_session
delete from turn_log where run_id in (select id from runs where session_id = $1);

-- name: delete_checkpoints_of_session
delete from checkpoints where run_id in (select id from runs where session_id = $1);

-- name: delete_messages_of_session
delete from messages where session_id = $1;

-- name: delete_earlier_events_of_session
delete from earlier_events where session_id = $1;

-- name: delete_events_of_session
delete from events
where session = (select session from event_runs where session_id = $1 limit 1);

-- name: delete_event_runs_of_session
delete from event_runs where session_id = $1;

-- name: delete_questions_of_session
delete from questions where session_id = $1;

-- name: delete_permission_rules_of_session
delete from permission_rules where scope = $1;

-- name: delete_plans_of_session
delete from plans where session_id = $1;

-- name: delete_inbox_of_session
delete from inbox where session_id = $1;

-- name: delete_runs_of_session
delete from runs where session_id = $1;

-- name: delete_tasks_of_session
delete from tasks where session_id = $1;
