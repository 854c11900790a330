-- Statements for SQLite and PostgreSQL. `-- name:` names the statement below it.
-- $1, $2 … are its values in order.

-- name: save_usage
insert into usage (
    session_id, run_id, model, input_tokens, output_tokens, cache_read_tokens,
    cache_write_tokens, cost, recorded, principal
) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
on conflict (run_id, model) do update set
    input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens,
    cache_read_tokens = excluded.cache_read_tokens,
    cache_write_tokens = excluded.cache_write_tokens, cost = excluded.cost,
    recorded = excluded.recorded;

-- name: add_usage
insert into usage (
    session_id, run_id, model, input_tokens, output_tokens, cache_read_tokens,
    cache_write_tokens, cost, recorded, principal
) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
on conflict (run_id, model) do update set
    input_tokens = usage.input_tokens + excluded.input_tokens,
    output_tokens = usage.output_tokens + excluded.output_tokens,
    cache_read_tokens = usage.cache_read_tokens + excluded.cache_read_tokens,
    cache_write_tokens = usage.cache_write_tokens + excluded.cache_write_tokens,
    cost = usage.cost + excluded.cost, recorded = excluded.recorded;

-- name: usage_of_person
select coalesce(sum(cost), 0),
    cast(coalesce(sum(case when cost is null then input_tokens + output_tokens
        + cache_read_tokens + cache_write_tokens else 0 end), 0) as bigint)
from usage
where principal = $1 and recorded >= $2;

-- name: usage_by_day
select substr(recorded, 1, 10), cast(sum(input_tokens) as bigint),
    cast(sum(output_tokens) as bigint), cast(sum(cache_read_tokens) as bigint),
    cast(sum(cache_write_tokens) as bigint), sum(cost)
from usage
where (cast($1 as text) is null or session_id = $1)
    and (cast($2 as text) is null or session_id in (select id from sessions where owner = $2))
group by substr(recorded, 1, 10) order by substr(recorded, 1, 10) desc limit $3;

-- name: usage_by_session
select session_id, cast(sum(input_tokens) as bigint),
    cast(sum(output_tokens) as bigint), cast(sum(cache_read_tokens) as bigint),
    cast(sum(cache_write_tokens) as bigint), sum(cost)
from usage
where (cast($1 as text) is null or session_id = $1)
    and (cast($2 as text) is null or session_id in (select id from sessions where owner = $2))
group by session_id order by max(number) desc limit $3;

-- name: usage_by_model
select model, cast(sum(input_tokens) as bigint),
    cast(sum(output_tokens) as bigint), cast(sum(cache_read_tokens) as bigint),
    cast(sum(cache_write_tokens) as bigint), sum(cost)
from usage
where (cast($1 as text) is null or session_id = $1)
    and (cast($2 as text) is null or session_id in (select id from sessions where owner = $2))
group by model order by max(number) desc limit $3;
