-- Lists and sums that take as long with a million stored events as with none.

-- Sums of the usage of ended runs by `kind`: `day` and `model` for all sessions (`owner` '') and for
-- those of an owner, `session`, and `person`, which is a day of the principal `owner` of the tasks.
-- `newest` is the highest number of a row that was added. `records` counts the rows, `priced` those
-- with a known cost; `cost` is theirs, and `unpriced_tokens` are those of the others.
create table usage_sums (
    kind text collate "C" not null,
    owner text collate "C" not null,
    name text collate "C" not null,
    newest bigint not null,
    records bigint not null,
    priced bigint not null,
    input_tokens bigint not null,
    output_tokens bigint not null,
    cache_read_tokens bigint not null,
    cache_write_tokens bigint not null,
    unpriced_tokens bigint not null,
    cost double precision not null,
    primary key (kind, owner, name)
);

create index usage_sums_of_sessions on usage_sums (kind, newest) where kind = 'session';

create index usage_sums_of_sessions_of_owner on usage_sums (owner, newest) where kind = 'session';

-- `summed` is 1 for a row that the sums contain: its run has ended.
alter table usage add column summed bigint not null default 0;

update usage set summed = 1
where run_id not in (select id from runs where status in ('queued', 'running', 'waiting'));

drop index usage_of_person;

create index usage_not_summed on usage (principal, recorded) where summed = 0;

insert into usage_sums (
    kind, owner, name, newest, records, priced, input_tokens, output_tokens, cache_read_tokens,
    cache_write_tokens, unpriced_tokens, cost
)
select kind, owner, name, max(number), count(*), count(cost), sum(input_tokens),
    sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens),
    sum(case when cost is null then
        input_tokens + output_tokens + cache_read_tokens + cache_write_tokens else 0 end),
    coalesce(sum(cost), 0)
from (
    select 'day' as kind, '' as owner, substr(recorded, 1, 10) as name, usage.*
    from usage where summed = 1
    union all
    select 'day', sessions.owner, substr(recorded, 1, 10), usage.*
    from usage join sessions on sessions.id = usage.session_id where summed = 1
    union all
    select 'model', '', model, usage.* from usage where summed = 1
    union all
    select 'model', sessions.owner, model, usage.*
    from usage join sessions on sessions.id = usage.session_id where summed = 1
    union all
    select 'session', sessions.owner, session_id, usage.*
    from usage join sessions on sessions.id = usage.session_id where summed = 1
    union all
    select 'person', principal, substr(recorded, 1, 10), usage.* from usage where summed = 1
) as parts
group by kind, owner, name;

-- The newest task of a session that no run created, '' for none, and the number of such tasks.
alter table sessions add column last_task_id text collate "C" not null default '';

alter table sessions add column task_count bigint not null default 0;

update sessions set
    task_count = (
        select count(*) from tasks where session_id = sessions.id and parent_task_id is null
    ),
    last_task_id = coalesce((
        select id from tasks where session_id = sessions.id and parent_task_id is null
        order by created desc, id desc limit 1
    ), '');

-- With the columns that lists filter by, so that only the rows of a page are read.
drop index sessions_pinned_first;

drop index sessions_of_owner_pinned_first;

create index sessions_pinned_first on sessions (
    pinned, updated, id, archived, one_shot, channel
);

create index sessions_of_owner_pinned_first on sessions (
    owner, pinned, updated, id, archived, one_shot, channel
);

-- Most tasks are completed: the others are found without reading those.
create index tasks_not_completed on tasks (status, created, id) where status <> 'completed';

create index tasks_not_completed_of_principal on tasks (principal, status, created, id)
    where status <> 'completed';

create index tasks_not_completed_of_session on tasks (session_id, status, created, id)
    where status <> 'completed';

create index questions_by_status on questions (status, asked, id);

create index questions_of_principal on questions (principal, asked, id);

create index artifacts_of_type on artifacts (type, created, id);

create index artifacts_favourite on artifacts (created, id) where favourite = 1;
