-- The same statements run on SQLite and on PostgreSQL. `-- name:` names the one below it,
-- $1, $2 … are its values in order.

-- name: claim_showing
insert into showings (run_id, door, owner, lease_until, last_position, closed, state)
values ($1, $2, $3, $4, 0, 0, '')
on conflict (run_id, door) do update set owner = excluded.owner, lease_until = excluded.lease_until
where showings.closed = 0 and (showings.owner = excluded.owner or showings.lease_until < $5)
returning last_position, state;

-- name: keep_showing
update showings set last_position = $4, state = $5, lease_until = $6
where run_id = $1 and door = $2 and owner = $3 and closed = 0 returning run_id;

-- name: close_showing
update showings set closed = 1, state = $4
where run_id = $1 and door = $2 and owner = $3 and closed = 0 returning run_id;

-- name: open_showings
select run_id, last_position, state from showings
where door = $1 and closed = 0 and lease_until < $2;

-- name: delete_showings_of_session
delete from showings where run_id in (select id from runs where session_id = $1);
