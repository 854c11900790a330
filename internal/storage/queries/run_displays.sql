-- Statements for SQLite and PostgreSQL. `-- name:` names the statement below it.
-- $1, $2 … are its values in order.

-- name: claim_run_display
insert into run_displays (run_id, channel, owner, lease_until, last_position, closed, state)
values ($1, $2, $3, $4, 0, 0, '')
on conflict (run_id, channel) do update set owner = excluded.owner,
    lease_until = excluded.lease_until
where run_displays.closed = 0
    and (run_displays.owner = excluded.owner or run_displays.lease_until <= $5)
returning last_position, state;

-- name: save_run_display
update run_displays set last_position = $4, state = $5, lease_until = $6
where run_id = $1 and channel = $2 and owner = $3 and closed = 0 returning run_id;

-- name: close_run_display
update run_displays set closed = 1, state = $4
where run_id = $1 and channel = $2 and owner = $3 and closed = 0 returning run_id;

-- name: run_display
select last_position, state from run_displays where run_id = $1 and channel = $2;

-- name: abandoned_run_displays
select run_id, last_position, state from run_displays
where channel = $1 and closed = 0 and lease_until <= $2;

-- name: release_run_displays
update run_displays set owner = '', lease_until = '' where channel = $1 and closed = 0;

-- name: delete_run_displays_of_session
delete from run_displays where run_id in (select id from runs where session_id = $1);
