-- `unknown_since` is the time of the first attempt to send a message whose outcome is unknown;
-- `isolated_failures` counts attempts that failed while other calls of the account succeeded.

alter table outbox add column unknown_since text;

alter table outbox add column isolated_failures bigint not null default 0;

update outbox set unknown_since = first_attempt where status = 'pending';

create index outbox_sent on outbox (channel, app, chat_id, settled) where status = 'sent';
