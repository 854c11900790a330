-- Finds what a message of the bot is, when people reply to it.

create index outbox_of_remote_id on outbox (remote_id) where remote_id <> '';
