-- Statements for SQLite and PostgreSQL. `-- name:` names the statement below it.
-- $1, $2 … are its values in order.

-- name: host
select name, marker, seen from hosts where name = $1;

-- name: host_by_marker
select name, marker, seen from hosts where marker = $1 and marker <> '';

-- name: hosts
select name, marker, seen from hosts order by name;

-- name: upsert_host
insert into hosts (name, marker, seen) values ($1, $2, $3)
on conflict (name) do update set marker = excluded.marker, seen = excluded.seen;

-- name: renew_host
update hosts set seen = $2 where name = $1;

-- name: shared_storage
select marker from shared_storage where kind = $1;

-- name: upsert_shared_storage
insert into shared_storage (kind, marker) values ($1, $2)
on conflict (kind) do update set marker = excluded.marker;

-- name: bind_session
update sessions set host = $2 where id = $1 and host = '';

-- name: session_host
select host from sessions where id = $1;

-- name: release_session_host
update sessions set host = ''
where id = $1 and host = $2
    and not exists (select 1 from runs where session_id = $1 and status = 'running');

-- name: move_session
update sessions set host = $2 where id = $1
    and not exists (select 1 from runs where session_id = $1 and status = 'running')
returning id;

-- name: forget_told_host
update runs set told_host = '' where session_id = $1 and status = 'queued' and told_host <> '';

-- name: runs_of_missing_hosts
select runs.id, runs.task_id, runs.session_id, sessions.host, coalesce(hosts.seen, '')
from runs
join sessions on sessions.id = runs.session_id
left join hosts on hosts.name = sessions.host
where runs.status = 'queued' and runs.terminal = 0 and sessions.host <> ''
    and runs.told_host <> sessions.host and coalesce(hosts.seen, '') < $1
order by runs.priority, runs.arrival limit $2;

-- name: set_told_host
update runs set told_host = $2 where id = $1 and status = 'queued' and told_host <> $2
returning id;

-- name: workspace_archive
select version, sha256, saved from workspace_archives where session_id = $1;

-- name: upsert_workspace_archive
insert into workspace_archives (session_id, version, sha256, saved) values ($1, $2, $3, $4)
on conflict (session_id) do update set version = excluded.version, sha256 = excluded.sha256,
    saved = excluded.saved;

-- name: renew_workspace_archive
update workspace_archives set version = $2 where session_id = $1;

-- name: delete_workspace_archive
delete from workspace_archives where session_id = $1;

-- name: insert_workspace_removals
insert into file_removals (kind, name)
select 'workspace of ' || hosts.name, cast($1 as text) from hosts order by hosts.name
on conflict (kind, name) do nothing;
