-- The same statements run on SQLite and on PostgreSQL. `-- name:` names the one below it,
-- $1, $2 … are its values in order.

-- name: chat_wish
select plan_review, model from chats where chat = $1;

-- name: keep_chat_wish
insert into chats (chat, plan_review, model) values ($1, $2, $3)
on conflict (chat) do update set plan_review = excluded.plan_review, model = excluded.model;
