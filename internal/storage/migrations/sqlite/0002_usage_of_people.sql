-- Usage is stored with every reply of the model, one row per run and model, for the person whose
-- task it was.

alter table usage add column principal text not null default '';

create unique index usage_of_run on usage (run_id, model);

create index usage_of_person on usage (principal, recorded);
