-- The same statements run on SQLite and on PostgreSQL. `-- name:` names the one below it,
-- $1, $2 … are its values in order.

-- name: write_rule
insert into grants (place, rule, principal, via, question_id, created)
values ($1, $2, $3, $4, $5, $6)
on conflict (place, rule) do nothing;

-- name: rules_of
select rule from grants where place = $1 or place = $2 order by number;

-- name: rules_page
select number, place, rule, principal, via, question_id, created
from grants where number > 0 order by number desc limit $1;

-- name: remove_rule
delete from grants where number = $1
returning number, place, rule, principal, via, question_id, created;

-- name: drop_codes
delete from pairings where expires <= $1;

-- name: insert_code
insert into pairings (code_hash, role, created, expires) values ($1, $2, $3, $4);

-- name: take_code
delete from pairings where code_hash = $1 and expires > $2 returning role;

-- name: put_person
insert into principals (id, name, role, via, created) values ($1, $2, $3, $4, $5)
on conflict (id) do update set name = excluded.name, role = excluded.role, via = excluded.via,
    created = excluded.created;

-- name: person
select id, name, role, via, created from principals where id = $1;

-- name: all_people
select id, name, role, via, created from principals where created > '' order by created, id;

-- name: remove_person
delete from principals where id = $1 returning id;

-- name: note_deed
insert into audit (at, principal, via, action, target, detail) values ($1, $2, $3, $4, $5, $6);

-- name: count_deeds
select count(*) from audit where action = $1 and at >= $2;

-- name: count_deeds_of
select count(*) from audit where principal = $1 and action = $2 and at >= $3;

-- name: deeds_page
select at, principal, via, action, target, detail from audit
where number > 0 order by number desc limit $1;
