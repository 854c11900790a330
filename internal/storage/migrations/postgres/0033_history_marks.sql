-- Looking up messages that a chat service did not deliver, in the histories of its chats.

-- The messages of an account that were sent before `checked` were received or looked up.
create table history_marks (
    channel text collate "C" not null,
    app text collate "C" not null,
    checked text collate "C" not null,
    primary key (channel, app)
);

-- The chats with sessions, and the newest messages that became part of one.
create index inbox_of_chat on inbox (channel, app, chat_id, number) where session_id is not null;
