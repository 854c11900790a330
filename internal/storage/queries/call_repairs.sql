-- Statements for SQLite and PostgreSQL. `-- name:` names the statement below it.
-- $1, $2 … are its values in order.

-- name: add_call_repairs
insert into call_repairs (provider, model, kind, count, last) values ($1, $2, $3, $4, $5)
on conflict (provider, model, kind) do update set count = call_repairs.count + excluded.count,
    last = excluded.last;

-- name: call_repairs
select provider, model, kind, count, last
from call_repairs where provider > '' order by provider, model, kind;
