-- Statements for SQLite and PostgreSQL. `-- name:` names the statement below it.
-- $1, $2 … are its values in order.

-- name: upsert_attachment_use
insert into attachment_uses (sha256, holder, expires, size) values ($1, $2, $3, $4)
on conflict (sha256, holder) do update set expires = excluded.expires, size = excluded.size;

-- name: copy_attachment_uses
insert into attachment_uses (sha256, holder, expires, size)
select sha256, $2, '', size from attachment_uses where holder = $1;

-- name: attachment_bytes
select cast(coalesce(sum(size), 0) as bigint) from attachment_uses where holder = $1;

-- name: attachment_use_of_owner
select holder from attachment_uses
where sha256 = $1 and (holder = $2 or holder in (select id from sessions where owner = $2))
limit 1;

-- name: attachment_use
select holder from attachment_uses where sha256 = $1 limit 1;

-- name: attachment_use_after
select holder from attachment_uses where sha256 = $1 and (expires = '' or expires >= $2) limit 1;

-- name: delete_attachment_use
delete from attachment_uses where sha256 = $1 and holder = $2;

-- name: delete_attachment_uses_of_session
delete from attachment_uses where holder = $1 returning sha256;

-- name: delete_other_attachment_uses
delete from attachment_uses where holder = $1 and sha256 <> $2 returning sha256;

-- name: expired_attachment_use
select sha256 from attachment_uses where expires <> '' and expires < $1 limit 1;

-- name: delete_expired_attachment_uses
delete from attachment_uses where expires <> '' and expires < $1 returning sha256;

-- name: insert_file_removal
insert into file_removals (kind, name) values ($1, $2) on conflict (kind, name) do nothing;

-- name: file_removals
select name from file_removals where kind = $1 and begun <= $3 order by name limit $2;

-- name: begin_file_removal
insert into file_removals (kind, name, begun) values ($1, $2, $3)
on conflict (kind, name) do update set begun = excluded.begun;

-- name: file_removal
select begun from file_removals where kind = $1 and name = $2;

-- name: delete_file_removal
delete from file_removals where kind = $1 and name = $2;
