-- Statements for SQLite and PostgreSQL. `-- name:` names the statement below it.
-- $1, $2 … are its values in order.

-- name: newest_artifact
select sha256, version, favourite from artifacts
where session_id = $1 and name = $2 order by version desc limit 1;

-- name: retire_artifact
update artifacts set newest = 0 where session_id = $1 and name = $2 and newest = 1;

-- name: insert_artifact
insert into artifacts (
    id, session_id, task_id, run_id, shared_run_id, call_id, team_id, principal, maker, type, version, newest,
    media_type, sha256, size, uri, created, favourite, source, name, caption, search
) values (
    $1, $2, $3, $4, $4, $5, $6, $7, $8, $9, $10, 1, $11, $12, $13, $14, $15, $16, $17, $18, $19,
    $20
);

-- name: artifact
select id, session_id, task_id, run_id, call_id, maker, name, version, type, media_type, sha256,
    size, uri, created, caption, favourite, principal
from artifacts where id = $1;

-- name: artifacts_page
select id, session_id, task_id, run_id, call_id, maker, name, version, type, media_type, sha256,
    size, uri, created, caption, favourite
from artifacts
where (created, id) < ($1, $2) and newest >= $3
    and (cast($4 as text) is null or type = $4)
    and favourite >= $5
    and search like $6 escape '\'
order by created desc, id desc limit $7;

-- name: artifacts_page_of_principal
select id, session_id, task_id, run_id, call_id, maker, name, version, type, media_type, sha256,
    size, uri, created, caption, favourite
from artifacts
where principal = $8 and (created, id) < ($1, $2) and newest >= $3
    and (cast($4 as text) is null or type = $4)
    and favourite >= $5
    and search like $6 escape '\'
order by created desc, id desc limit $7;

-- name: artifacts_page_of_session
select id, session_id, task_id, run_id, call_id, maker, name, version, type, media_type, sha256,
    size, uri, created, caption, favourite
from artifacts
where session_id = $8 and (created, id) < ($1, $2) and newest >= $3
    and (cast($4 as text) is null or type = $4)
    and favourite >= $5
    and search like $6 escape '\'
    and (cast($9 as text) is null or principal = $9)
    and (cast($10 as text) is null or task_id = $10)
order by created desc, id desc limit $7;

-- name: artifacts_of_tree
select id, session_id, task_id, run_id, call_id, maker, name, version, type, media_type, sha256,
    size, uri, created, caption, favourite
from artifacts
where task_id = $1
union all
select id, session_id, task_id, run_id, call_id, maker, name, version, type, media_type, sha256,
    size, uri, created, caption, favourite
from artifacts
where task_id in (select task_id from runs where root_task_id = $1)
order by created, id;

-- name: artifacts_page_of_task
select id, session_id, task_id, run_id, call_id, maker, name, version, type, media_type, sha256,
    size, uri, created, caption, favourite
from artifacts
where task_id = $8 and (created, id) < ($1, $2) and newest >= $3
    and (cast($4 as text) is null or type = $4)
    and favourite >= $5
    and search like $6 escape '\'
    and (cast($9 as text) is null or principal = $9)
order by created desc, id desc limit $7;

-- name: artifacts_page_of_type
select id, session_id, task_id, run_id, call_id, maker, name, version, type, media_type, sha256,
    size, uri, created, caption, favourite
from artifacts
where type = $4 and (created, id) < ($1, $2) and newest >= $3
order by created desc, id desc limit $5;

-- name: favourite_artifacts
select id, session_id, task_id, run_id, call_id, maker, name, version, type, media_type, sha256,
    size, uri, created, caption, favourite
from artifacts
where favourite = 1 and (created, id) < ($1, $2) and newest >= $3
    and (cast($4 as text) is null or type = $4)
    and search like $5 escape '\'
order by created desc, id desc limit $6;

-- name: artifact_cursor
select created, id from artifacts
where id = $1 and (cast($2 as text) is null or principal = $2);

-- name: newest_artifacts
select id, session_id, task_id, run_id, call_id, maker, name, version, type, media_type, sha256,
    size, uri, created, caption, favourite, source
from artifacts where session_id = $1 and newest = 1 order by created, id;

-- name: artifacts_of_run
select id, session_id, task_id, run_id, call_id, maker, name, version, type, media_type, sha256,
    size, uri, created, caption, favourite
from artifacts
where shared_run_id = $1 and not exists (
    select 1 from artifacts as later
    where later.session_id = artifacts.session_id and later.name = artifacts.name
        and later.version > artifacts.version and later.shared_run_id = $1
)
order by created, id;

-- name: share_artifact
update artifacts set shared_run_id = $2 where id = $1;

-- name: set_artifact_source
update artifacts set source = $2 where id = $1;

-- name: change_artifact
update artifacts set favourite = $2, caption = $3, search = $4 where id = $1 returning id;

-- name: delete_artifacts_of_session
delete from artifacts where session_id = $1;
