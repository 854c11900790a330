-- How the coming tasks of a chat are wanted, and which message showed which question.

create table chats (
    chat text primary key,
    plan_review text not null,
    model text not null
);

create index outbox_questions on outbox (remote_id) where question_id <> '';
