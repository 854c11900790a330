-- When people were alerted to questions that wait, and the reactions of the bot on the messages that a
-- run received: with an id of the chat service, and the run that an answer or a command is about.

alter table questions add column urged text collate "C" not null default '';

alter table inbox add column reaction text collate "C" not null default '';

alter table inbox add column reaction_run text collate "C" not null default '';

create index inbox_reactions on inbox (channel, app, number) where reaction <> '';
