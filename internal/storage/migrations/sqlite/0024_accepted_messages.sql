-- The accepted messages of a chat: an earlier one is processed first.
create index inbox_accepted_of_chat on inbox (channel, app, chat_id, number)
where status = 'accepted';
