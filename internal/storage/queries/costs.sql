-- The same statements run on SQLite and on PostgreSQL. `-- name:` names the one below it,
-- $1, $2 … are its values in order.

-- name: insert_cost
insert into costs (
    session_id, run_id, model, input_tokens, output_tokens, cache_read_tokens,
    cache_write_tokens, cost, recorded
) values ($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: costs_by_day
select substr(recorded, 1, 10), cast(sum(input_tokens) as bigint),
    cast(sum(output_tokens) as bigint), cast(sum(cache_read_tokens) as bigint),
    cast(sum(cache_write_tokens) as bigint), sum(cost)
from costs
where (cast($1 as text) is null or session_id = $1)
    and (cast($2 as text) is null or session_id in (select id from sessions where owner = $2))
group by substr(recorded, 1, 10) order by substr(recorded, 1, 10) desc limit $3;

-- name: costs_by_session
select session_id, cast(sum(input_tokens) as bigint),
    cast(sum(output_tokens) as bigint), cast(sum(cache_read_tokens) as bigint),
    cast(sum(cache_write_tokens) as bigint), sum(cost)
from costs
where (cast($1 as text) is null or session_id = $1)
    and (cast($2 as text) is null or session_id in (select id from sessions where owner = $2))
group by session_id order by max(number) desc limit $3;

-- name: costs_by_model
select model, cast(sum(input_tokens) as bigint),
    cast(sum(output_tokens) as bigint), cast(sum(cache_read_tokens) as bigint),
    cast(sum(cache_write_tokens) as bigint), sum(cost)
from costs
where (cast($1 as text) is null or session_id = $1)
    and (cast($2 as text) is null or session_id in (select id from sessions where owner = $2))
group by model order by max(number) desc limit $3;
