-- Statements for SQLite and PostgreSQL. `-- name:` names the statement below it.
-- $1, $2 … are its values in order.

-- name: insert_question
insert into questions (
    id, run_id, task_id, session_id, principal, chat, audience, status, asked, expires, question
) values ($1, $2, $3, $4, $5, $6, $7, 'open', $8, $9, $10)
on conflict (id) do nothing;

-- name: question
select question, run_id, task_id, session_id, principal, chat, audience, asked, expires, status,
    answer
from questions where id = $1;

-- name: questions_page
select question, run_id, task_id, session_id, principal, chat, audience, asked, expires, status,
    answer
from questions
where (asked, id) < ($1, $2)
order by asked desc, id desc limit $3;

-- name: questions_page_of_status
select question, run_id, task_id, session_id, principal, chat, audience, asked, expires, status,
    answer
from questions
where status = $4 and (asked, id) < ($1, $2)
order by asked desc, id desc limit $3;

-- name: questions_page_of_principal
select question, run_id, task_id, session_id, principal, chat, audience, asked, expires, status,
    answer
from questions
where principal = $5 and (asked, id) < ($1, $2)
    and (cast($4 as text) is null or status = $4)
order by asked desc, id desc limit $3;

-- name: questions_page_of_session
select question, run_id, task_id, session_id, principal, chat, audience, asked, expires, status,
    answer
from questions
where session_id = $5 and (asked, id) < ($1, $2)
    and (cast($4 as text) is null or status = $4)
    and (cast($6 as text) is null or principal = $6)
order by asked desc, id desc limit $3;

-- name: open_questions_of_chat
select question, run_id, task_id, session_id, principal, chat, audience, asked, expires, status,
    answer
from questions where chat = $1 and status = 'open' order by asked, id;

-- name: open_question_of_run
select question, run_id, task_id, session_id, principal, chat, audience, asked, expires, status,
    answer
from questions where run_id = $1 and status = 'open' order by asked, id limit 1;

-- name: expired_questions
select question, run_id, task_id, session_id, principal, chat, audience, asked, expires, status,
    answer
from questions where status = 'open' and expires <= $1 order by expires, id;

-- name: questions_to_urge
select question, run_id, task_id, session_id, principal, chat, audience, asked, expires, status,
    answer
from questions
where status = 'open' and urged = '' and asked <= $2 and substr(chat, 1, length($1)) = $1
order by asked, id limit $3;

-- name: mark_question_urged
update questions set urged = $2
where id = $1 and status = 'open' and urged = ''
returning id;

-- name: unmark_question_urged
update questions set urged = '' where id = $1;

-- name: answer_question
update questions set status = $2, answer = $3, closed = $4
where id = $1 and status = 'open'
returning id;

-- name: replace_answer
update questions set answer = $2 where id = $1;

-- name: close_questions_of_run
update questions set status = 'closed', closed = $2 where run_id = $1 and status = 'open';

-- name: upsert_plan
insert into plans (run_id, version, session_id, updated, plan) values ($1, $2, $3, $4, $5)
on conflict (run_id, version) do update set updated = excluded.updated, plan = excluded.plan;
