-- Statements for SQLite and PostgreSQL. `-- name:` names the statement below it.
-- $1, $2 … are its values in order.

-- name: conversation
select session_id, run_id, asks, taken from conversations
where principal = $1 and transcript = $2 order by taken, created desc, session_id desc limit 1;

-- name: take_conversation
update conversations set taken = 1
where principal = $1 and transcript = $2 and session_id = $3 and taken = 0 returning session_id;

-- name: release_conversation
update conversations set taken = 0 where principal = $1 and transcript = $2 and session_id = $3;

-- name: put_conversation
insert into conversations (principal, transcript, session_id, run_id, asks, taken, created)
values ($1, $2, $3, $4, $5, 0, $6)
on conflict (principal, transcript, session_id) do update set run_id = excluded.run_id,
    asks = excluded.asks, taken = 0, created = excluded.created
where conversations.run_id <> excluded.run_id;

-- name: delete_conversations_of_session
delete from conversations where session_id = $1;
