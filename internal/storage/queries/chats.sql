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

-- name: add_chat_contact
insert into chat_contacts (channel, app, chat_id, person) values ($1, $2, $3, $4)
on conflict (channel, app, chat_id) do update set person = excluded.person
where chat_contacts.person = '' and excluded.person <> '';

-- name: greet_chat
insert into chat_contacts (channel, app, chat_id, person, greeted) values ($1, $2, $3, $4, $5)
on conflict (channel, app, chat_id) do update set
    person = case when excluded.person = '' then chat_contacts.person else excluded.person end,
    greeted = excluded.greeted
where chat_contacts.greeted = ''
returning chat_id;

-- name: direct_chat_of
select chat_id from chat_contacts
where channel = $1 and app = $2 and person = $3 and person <> '' order by chat_id limit 1;

-- name: count_bot_turn
insert into chat_contacts (channel, app, chat_id, bot_turns) values ($1, $2, $3, 1)
on conflict (channel, app, chat_id) do update set bot_turns = chat_contacts.bot_turns + 1
returning bot_turns;

-- name: end_bot_turns
update chat_contacts set bot_turns = 0
where channel = $1 and app = $2 and chat_id = $3 and bot_turns > 0;
