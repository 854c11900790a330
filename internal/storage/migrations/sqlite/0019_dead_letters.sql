-- Received messages that cannot be processed, and runs that failed because they killed their process.

-- `attempts` counts the attempts to process an accepted message, the current one included, and
-- `failure` is why the last one failed, '' while it has no outcome. The message may be processed from
-- `next_attempt` on. With the status `failed` it was set aside at `failed`.
alter table inbox add column attempts bigint not null default 0;

alter table inbox add column next_attempt text not null default '';

alter table inbox add column failure text not null default '';

alter table inbox add column failed text not null default '';

create index inbox_failed on inbox (status, number) where status = 'failed';

create index runs_failed_after_crashes on runs (status, ended) where status = 'failed' and crashes > 0;
