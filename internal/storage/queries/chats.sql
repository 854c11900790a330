-- Statements for SQLite and PostgreSQL. `-- name:` names the statement below it.
-- $1, $2 … are its values in order.

-- name: chat_settings
select plan_review, model, network, profile, instructions from chat_settings where chat = $1;

-- name: upsert_chat_settings
insert into chat_settings (chat, plan_review, model, network, profile, instructions)
values ($1, $2, $3, $4, $5, $6)
on conflict (chat) do update set
    plan_review = excluded.plan_review, model = excluded.model, network = excluded.network,
    profile = excluded.profile, instructions = excluded.instructions;
