-- The same statements run on SQLite and on PostgreSQL. `-- name:` names the one below it,
-- $1, $2 … are its values in order.

-- name: accept_message
insert into inbox (
    channel, app, message_id, chat_id, principal, received, status, words, raw
) values ($1, $2, $3, $4, $5, $6, 'accepted', '', $7)
on conflict (channel, app, message_id) do nothing
returning number;

-- name: take_message
insert into inbox (
    channel, app, message_id, chat_id, principal, received, status, words, raw,
    session_id, run_id, steer
) values ($1, $2, $3, $4, $5, $6, 'taken', $7, $8, $9, $10, $11)
on conflict (channel, app, message_id) do update set
    status = 'taken', words = excluded.words, session_id = excluded.session_id,
    run_id = excluded.run_id, steer = excluded.steer
where inbox.status = 'accepted'
returning number;

-- name: untold_messages
select number, words, principal, channel, app, chat_id, message_id from inbox
where run_id = $1 and steer = 1 and status = 'taken' order by number;

-- name: tell_message
update inbox set status = 'told' where number = $1;

-- name: handle_messages
update inbox set status = 'handled'
where run_id = $1 and (status = 'told' or (status = 'taken' and steer = 0));

-- name: move_message
update inbox set run_id = $2, steer = 0, status = 'taken' where number = $1;

-- name: accepted_messages
select channel, app, message_id, chat_id, principal, raw, received from inbox
where channel = $1 and app = $2 and status = 'accepted' order by number limit $3;

-- name: dismiss_message
update inbox set status = 'handled'
where channel = $1 and app = $2 and message_id = $3 and status = 'accepted' returning number;

-- name: place_of_message
select number, status, steer, run_id, (
        select count(*) from inbox as other
        where other.run_id = inbox.run_id and other.steer = 0 and other.number <> inbox.number
    )
from inbox where channel = $1 and app = $2 and message_id = $3;

-- name: unsay_message
update inbox set status = 'handled' where number = $1 and status = 'taken' and steer = 1;

-- name: drop_messages
update inbox set status = 'handled' where run_id = $1 and status = 'taken' and steer = 1;
