-- The same statements run on SQLite and on PostgreSQL. `-- name:` names the one below it,
-- $1, $2 … are its values in order.

-- name: insert_question
insert into questions (id, run_id, session_id, status, asked, expires, question)
values ($1, $2, $3, 'open', $4, $5, $6)
on conflict (id) do nothing;

-- name: question
select question, run_id, session_id, status, expires, answer from questions where id = $1;

-- name: open_questions_of_session
select question, run_id, session_id, status, expires, answer from questions
where session_id = $1 and status = 'open' order by asked, id;

-- name: expired_questions
select question, run_id, session_id, status, expires, answer from questions
where status = 'open' and expires <= $1 order by expires, id;

-- name: answer_question
update questions set status = $2, answer = $3, closed = $4
where id = $1 and status = 'open'
returning id;

-- name: close_questions_of_run
update questions set status = 'closed', closed = $2 where run_id = $1 and status = 'open';

-- name: store_plan
insert into plans (run_id, version, session_id, updated, plan) values ($1, $2, $3, $4, $5)
on conflict (run_id, version) do update set updated = excluded.updated, plan = excluded.plan;
