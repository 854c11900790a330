-- What a person thinks of the answer to a task, as JSON; 'null' for nothing.

alter table tasks add column feedback text not null default 'null';
