-- Statements for SQLite and PostgreSQL. `-- name:` names the statement below it.
-- $1, $2 … are its values in order.

-- name: upsert_model_lesson
insert into model_lessons (
    provider, address, model, kind, name, change, words, version, learned
) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
on conflict (provider, address, model, kind, name) do update set change = excluded.change,
    words = excluded.words, version = excluded.version, learned = excluded.learned;

-- name: model_lessons
select provider, address, model, kind, name, change, words, version, learned
from model_lessons where provider > '' order by provider, address, model, kind, name;

-- name: delete_model_lesson
delete from model_lessons
where provider = $1 and address = $2 and model = $3 and kind = $4 and name = $5
returning provider;
