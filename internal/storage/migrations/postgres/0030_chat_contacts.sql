-- What is known of chats apart from their messages, which retention deletes, and rated answers.

-- `person` is the principal of a direct chat, '' for a group. `greeted` is when the bot introduced
-- itself, '' if it has not. `bot_turns` counts the messages of bots since the last one of a person.
create table chat_contacts (
    channel text collate "C" not null,
    app text collate "C" not null,
    chat_id text collate "C" not null,
    person text collate "C" not null default '',
    greeted text collate "C" not null default '',
    bot_turns bigint not null default 0,
    primary key (channel, app, chat_id)
);
create index chat_contacts_of_person on chat_contacts (channel, app, person) where person <> '';

create index tasks_with_feedback on tasks (created, id) where feedback <> 'null';
