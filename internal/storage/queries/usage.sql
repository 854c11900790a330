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

-- name: spending_of_tree
with recursive below (id) as (
    select id from runs where id = $1
    union all
    select runs.id from runs join below on runs.parent_run_id = below.id
)
select cast($1 as text), runs.id, case when runs.ended is null then 0 else 1 end,
    runs.usage, runs.cost,
    usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens,
    usage.cost
from below join runs on runs.id = below.id
left join usage on usage.run_id = runs.id and runs.ended is null;

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

-- name: usage_of_run
select usage.session_id, sessions.owner, usage.principal, usage.model, usage.number,
    usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens,
    usage.cost, usage.recorded
from usage left join sessions on sessions.id = usage.session_id
where usage.run_id = $1 and usage.summed = $2;

-- name: mark_usage_summed
update usage set summed = $2 where run_id = $1;

-- name: summed_usage
select usage.session_id, sessions.owner, usage.principal, usage.model, usage.number,
    usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens,
    usage.cost, usage.recorded
from usage left join sessions on sessions.id = usage.session_id
where usage.number > $1 and usage.number <= $2 and usage.recorded < $3 and usage.summed = 1;

-- name: prune_usage
delete from usage where number > $1 and number <= $2 and recorded < $3 and summed = 1;

-- name: delete_usage_of_session
delete from usage where session_id = $1
returning session_id, cast($2 as text), principal, model, number, input_tokens, output_tokens,
    cache_read_tokens, cache_write_tokens, cost, recorded;

-- name: add_to_usage_sum
insert into usage_sums (
    kind, owner, name, newest, records, priced, input_tokens, output_tokens, cache_read_tokens,
    cache_write_tokens, unpriced_tokens, cost
) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
on conflict (kind, owner, name) do update set
    newest = case when excluded.newest > usage_sums.newest then excluded.newest
        else usage_sums.newest end,
    records = usage_sums.records + excluded.records, priced = usage_sums.priced + excluded.priced,
    input_tokens = usage_sums.input_tokens + excluded.input_tokens,
    output_tokens = usage_sums.output_tokens + excluded.output_tokens,
    cache_read_tokens = usage_sums.cache_read_tokens + excluded.cache_read_tokens,
    cache_write_tokens = usage_sums.cache_write_tokens + excluded.cache_write_tokens,
    unpriced_tokens = usage_sums.unpriced_tokens + excluded.unpriced_tokens,
    cost = case when usage_sums.priced + excluded.priced = 0 then 0
        else usage_sums.cost + excluded.cost end;

-- name: delete_empty_usage_sum
delete from usage_sums where kind = $1 and owner = $2 and name = $3 and records = 0;

-- name: usage_of_person
select coalesce(sum(cost), 0), cast(coalesce(sum(unpriced_tokens), 0) as bigint)
from (
    select cost, unpriced_tokens from usage_sums
    where kind = 'person' and owner = $1 and name >= $2
    union all
    select coalesce(cost, 0), case when cost is null
        then input_tokens + output_tokens + cache_read_tokens + cache_write_tokens else 0 end
    from usage where summed = 0 and principal = $1 and recorded >= $2
) as parts;

-- name: usage_by_day_or_model
select name, cast(sum(input_tokens) as bigint), cast(sum(output_tokens) as bigint),
    cast(sum(cache_read_tokens) as bigint), cast(sum(cache_write_tokens) as bigint),
    case when sum(priced) > 0 then sum(cost) end
from (
    select name, newest, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
        priced, cost
    from usage_sums where kind = $1 and owner = $2
    union all
    select case $1 when 'day' then substr(recorded, 1, 10) else model end, number, input_tokens,
        output_tokens, cache_read_tokens, cache_write_tokens,
        case when cost is null then 0 else 1 end, coalesce(cost, 0)
    from usage
    where summed = 0 and ($2 = '' or exists (
        select 1 from sessions where sessions.id = usage.session_id and sessions.owner = $2
    ))
) as parts
group by name
order by case $1 when 'day' then name else '' end desc, max(newest) desc limit $3;

-- name: usage_by_session
with listed as (
    select owner, name from (
        select owner, name from usage_sums
        where kind = 'session' and $1 = '' order by newest desc limit $2
    ) as all_sessions
    union
    select owner, name from (
        select owner, name from usage_sums
        where kind = 'session' and owner = $1 order by newest desc limit $2
    ) as sessions_of_owner
    union
    select sessions.owner, sessions.id
    from usage join sessions on sessions.id = usage.session_id
    where usage.summed = 0 and ($1 = '' or sessions.owner = $1)
)
select name, cast(sum(input_tokens) as bigint), cast(sum(output_tokens) as bigint),
    cast(sum(cache_read_tokens) as bigint), cast(sum(cache_write_tokens) as bigint),
    case when sum(priced) > 0 then sum(cost) end
from (
    select usage_sums.name, newest, input_tokens, output_tokens, cache_read_tokens,
        cache_write_tokens, priced, cost
    from listed join usage_sums on usage_sums.kind = 'session'
        and usage_sums.owner = listed.owner and usage_sums.name = listed.name
    union all
    select session_id, number, input_tokens, output_tokens, cache_read_tokens,
        cache_write_tokens, case when cost is null then 0 else 1 end, coalesce(cost, 0)
    from usage
    where summed = 0 and ($1 = '' or exists (
        select 1 from sessions where sessions.id = usage.session_id and sessions.owner = $1
    ))
) as parts
group by name order by max(newest) desc limit $2;

-- name: usage_of_session
select name, cast(sum(input_tokens) as bigint), cast(sum(output_tokens) as bigint),
    cast(sum(cache_read_tokens) as bigint), cast(sum(cache_write_tokens) as bigint),
    case when sum(priced) > 0 then sum(cost) end
from (
    select name, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, priced, cost
    from usage_sums where kind = 'session' and name = $1
        and owner = (select owner from sessions where id = $1)
    union all
    select session_id, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
        case when cost is null then 0 else 1 end, coalesce(cost, 0)
    from usage where summed = 0 and run_id in (
        select id from runs where session_id = $1 and status in ('queued', 'running', 'waiting')
    )
) as parts
group by name;

-- name: usage_of_session_by_day_or_model
select case $2 when 'day' then substr(recorded, 1, 10) else model end,
    cast(sum(input_tokens) as bigint), cast(sum(output_tokens) as bigint),
    cast(sum(cache_read_tokens) as bigint), cast(sum(cache_write_tokens) as bigint), sum(cost)
from usage where session_id = $1
group by 1
order by case $2 when 'day' then max(substr(recorded, 1, 10)) else '' end desc, max(number) desc
limit $3;
