-- Statements for SQLite and PostgreSQL. `-- name:` names the statement below it.
-- $1, $2 … are its values in order.

-- name: gateway
select owner, lease_until from gateway where id = 1;

-- name: claim_gateway
insert into gateway (id, owner, lease_until) values (1, $1, $2)
on conflict (id) do update set owner = excluded.owner, lease_until = excluded.lease_until
where gateway.owner = $3 returning id;

-- name: renew_gateway
update gateway set lease_until = $2 where id = 1 and owner = $1 returning id;

-- name: delete_gateway
delete from gateway where id = 1 and owner = $1;
