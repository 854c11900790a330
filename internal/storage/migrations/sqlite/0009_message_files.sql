-- The files of messages that steer a run, as JSON.

alter table inbox add column attachments text not null default '[]';
