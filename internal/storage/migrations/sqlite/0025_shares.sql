-- The runs of each person start in turn, and only so many of them run at once.

-- `person` is the principal whose share a run belongs to, '' for the owner, who has no limit. A run
-- starts when fewer than `max_running` of the person's runs are running.
alter table runs add column person text not null default '';
alter table runs add column max_running bigint not null default 0;

create index runs_of_person on runs (status, person, priority, arrival);

create index runs_started_of_person on runs (person, started) where person <> '';
