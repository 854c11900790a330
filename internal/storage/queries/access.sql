-- Statements for SQLite and PostgreSQL. `-- name:` names the statement below it.
-- $1, $2 … are its values in order.

-- name: insert_permission_rule
insert into permission_rules (scope, rule, principal, via, question_id, created)
values ($1, $2, $3, $4, $5, $6)
on conflict (scope, rule) do nothing;

-- name: permission_rules_of
select rule from permission_rules where scope = $1 or scope = $2 order by number;

-- name: permission_rules_page
select number, scope, rule, principal, via, question_id, created
from permission_rules where number > 0 order by number desc limit $1;

-- name: delete_permission_rule
delete from permission_rules where number = $1
returning number, scope, rule, principal, via, question_id, created;

-- name: delete_expired_pairing_codes
delete from pairing_codes where expires <= $1;

-- name: insert_pairing_code
insert into pairing_codes (code_hash, role, created, expires) values ($1, $2, $3, $4);

-- name: redeem_pairing_code
delete from pairing_codes where code_hash = $1 and expires > $2 returning role;

-- name: upsert_role_assignment
insert into role_assignments (principal, name, role, via, created) values ($1, $2, $3, $4, $5)
on conflict (principal) do update set name = excluded.name, role = excluded.role,
    via = excluded.via, created = excluded.created;

-- name: role_assignment
select principal, name, role, via, created from role_assignments where principal = $1;

-- name: role_assignments
select principal, name, role, via, created from role_assignments
where created > '' order by created, principal;

-- name: delete_role_assignment
delete from role_assignments where principal = $1 returning principal;

-- name: insert_audit_entry
insert into audit_entries (at, principal, via, action, target, detail)
values ($1, $2, $3, $4, $5, $6);

-- name: count_audit_entries
select count(*) from audit_entries where action = $1 and at >= $2;

-- name: count_audit_entries_of_principal
select count(*) from audit_entries where principal = $1 and action = $2 and at >= $3;

-- name: audit_entries_page
select at, principal, via, action, target, detail from audit_entries
where number > 0 order by number desc limit $1;
