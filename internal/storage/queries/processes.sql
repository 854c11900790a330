-- Statements for SQLite and PostgreSQL. `-- name:` names the statement below it.
-- $1, $2 … are its values in order.

-- name: processes
select owner, role, host, pid, version, started, lease_until from processes;

-- name: active_runs_of_owners
select owner, count(*) from runs where status = 'running' group by owner;

-- name: leaders
select name, owner from leaderships where owner <> '';

-- name: insert_process
insert into processes (owner, role, host, pid, version, started, lease_until)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (owner) do update set lease_until = excluded.lease_until;

-- name: renew_process
update processes set lease_until = $2 where owner = $1;

-- name: delete_process
delete from processes where owner = $1;

-- name: delete_ended_process
delete from processes where owner = $1 and lease_until = $2;

-- name: leadership
select owner, fence, lease_until from leaderships where name = $1;

-- name: claim_leadership
insert into leaderships (name, owner, fence, lease_until) values ($1, $2, 1, $3)
on conflict (name) do update set owner = excluded.owner, fence = leaderships.fence + 1,
    lease_until = excluded.lease_until
where leaderships.fence = $4 and leaderships.lease_until = $5
returning fence;

-- name: renew_leaderships
update leaderships set lease_until = $2 where owner = $1;

-- name: release_leadership
update leaderships set owner = '', lease_until = '', fence = fence + 1
where name = $1 and fence = $2;

-- name: release_leaderships
update leaderships set owner = '', lease_until = '', fence = fence + 1;
