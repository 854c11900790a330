-- Statements for SQLite and PostgreSQL. `-- name:` names the statement below it.
-- $1, $2 … are its values in order.

-- name: accept_message
insert into inbox (
    channel, app, message_id, chat_id, principal, received, status, text, raw, sent
) values ($1, $2, $3, $4, $5, $6, 'accepted', '', $7, $8)
on conflict (channel, app, message_id) do nothing
returning number;

-- name: assign_message
insert into inbox (
    channel, app, message_id, chat_id, principal, received, status, text, raw,
    session_id, run_id, steer, prompt, attachments
) values ($1, $2, $3, $4, $5, $6, 'assigned', $7, $8, $9, $10, $11, $12, $13)
on conflict (channel, app, message_id) do update set
    status = 'assigned', principal = excluded.principal, text = excluded.text, session_id = excluded.session_id,
    run_id = excluded.run_id, steer = excluded.steer, prompt = excluded.prompt,
    attachments = excluded.attachments
where inbox.status = 'accepted'
returning number;

-- name: accept_edited_message
insert into inbox (
    channel, app, message_id, chat_id, principal, received, status, text, raw, sent
) values ($1, $2, $3, $4, $5, $6, 'accepted', '', $7, $8)
on conflict (channel, app, message_id) do update set
    status = 'accepted', raw = excluded.raw, received = excluded.received, sent = excluded.sent,
    attempts = 0, next_attempt = '', failure = ''
where inbox.status = 'accepted' or (inbox.status = 'handled' and inbox.run_id is null)
returning number;

-- name: undelivered_messages
select number, text, principal, channel, app, chat_id, message_id, prompt, attachments from inbox
where run_id = $1 and steer = 1 and status in ('assigned', 'delivering') order by number;

-- name: begin_delivery
update inbox set status = 'delivering'
where run_id = $1 and steer = 1 and status = 'assigned';

-- name: mark_message_delivered
update inbox set status = 'delivered' where number = $1;

-- name: mark_messages_handled
update inbox set status = 'handled'
where run_id = $1 and (status = 'delivered' or (status = 'assigned' and steer = 0));

-- name: reassign_message
update inbox set run_id = $2, steer = 0, status = 'assigned' where number = $1;

-- name: accepted_messages
select channel, app, message_id, chat_id, principal, raw, received, sent,
    attempts, next_attempt, failure
from inbox
where channel = $1 and app = $2 and status = 'accepted' order by number limit $3;

-- name: begin_processing
update inbox set attempts = $4, next_attempt = $5, failure = ''
where channel = $1 and app = $2 and message_id = $3 and status = 'accepted'
    and ($6 = '' or exists (select 1 from leaderships where name = $6 and fence = $7))
    and not exists (
        select 1 from inbox as earlier
        where earlier.channel = $1 and earlier.app = $2 and earlier.chat_id = inbox.chat_id
            and earlier.status = 'accepted' and earlier.number < inbox.number
    )
returning number;

-- name: postpone_processing
update inbox set attempts = $4, next_attempt = $5, failure = $6
where channel = $1 and app = $2 and message_id = $3 and status = 'accepted';

-- name: set_message_aside
update inbox set status = 'failed', failure = $4, text = $5, failed = $6
where channel = $1 and app = $2 and message_id = $3 and status = 'accepted' returning number;

-- name: unprocessed_messages
select number, channel, app, message_id, chat_id, principal, raw, received, sent, text,
    attempts, failure, failed
from inbox where status = 'failed' order by number desc limit $1;

-- name: retry_processing
update inbox set status = 'accepted', attempts = 0, next_attempt = '', failure = '', failed = ''
where number = $1 and status = 'failed' returning message_id;

-- name: dismiss_unprocessed_message
update inbox set status = 'handled' where number = $1 and status = 'failed' returning message_id;

-- name: raw_message
select raw from inbox where channel = $1 and app = $2 and message_id = $3;

-- name: text_of_message
select text from inbox where number = $1;

-- name: replace_message_content
update inbox set text = $2, prompt = $3, attachments = $4 where number = $1;

-- name: times_of_message
select sent, received from inbox where channel = $1 and app = $2 and message_id = $3;

-- name: dismiss_message
update inbox set status = 'handled'
where channel = $1 and app = $2 and message_id = $3 and status = 'accepted' returning number;

-- name: message_state
select number, status, steer, run_id, (
        select count(*) from inbox as other
        where other.run_id = inbox.run_id and other.steer = 0 and other.number <> inbox.number
        and (inbox.steer = 0 or other.number > inbox.number)
    )
from inbox where channel = $1 and app = $2 and message_id = $3;

-- name: withdraw_message
update inbox set status = 'withdrawn'
where number = $1 and status in ('assigned', 'delivering') and steer = 1;

-- name: take_message_back
update inbox set status = 'withdrawn' where number = $1;

-- name: give_message_back
update inbox set status = 'returned'
where number = $1 and status in ('assigned', 'delivering') and steer = 1;

-- name: waiting_messages
select inbox.number, inbox.status, inbox.steer, inbox.run_id, runs.task_id, inbox.text,
    inbox.principal, inbox.channel, inbox.received, inbox.chat_id, inbox.message_id,
    inbox.attachments
from inbox join runs on runs.id = inbox.run_id
where inbox.session_id = $1 and inbox.status in ('assigned', 'returned')
    and (inbox.steer = 1 or (runs.status = 'queued' and runs.fence = 0))
order by inbox.number;

-- name: waiting_message
select inbox.number, inbox.status, inbox.steer, inbox.run_id, runs.task_id, inbox.text,
    inbox.principal, inbox.channel, inbox.received, inbox.chat_id, inbox.message_id,
    inbox.attachments
from inbox join runs on runs.id = inbox.run_id
where inbox.session_id = $1 and inbox.number = $2;

-- name: session_of_message
select session_id from inbox
where channel = $1 and app = $2 and message_id = $3 and session_id is not null;

-- name: raw_messages_between
select raw from inbox
where channel = $1 and app = $2 and message_id >= $3 and message_id < $4 order by message_id;

-- name: accepted_messages_of_chat
select channel, app, message_id, chat_id, principal, raw, received, sent,
    attempts, next_attempt, failure
from inbox
where channel = $1 and app = $2 and chat_id = $3 and status = 'accepted' order by number limit $4;

-- name: active_chats
with recursive active_chats (chat_id) as (
    select min(chat_id) from inbox where channel = $1 and app = $2 and session_id is not null
    union all
    select (
        select min(inbox.chat_id) from inbox
        where channel = $1 and app = $2 and session_id is not null
            and inbox.chat_id > active_chats.chat_id
    )
    from active_chats where active_chats.chat_id is not null
)
select active_chats.chat_id, (
        select max(number) from inbox
        where channel = $1 and app = $2 and session_id is not null
            and inbox.chat_id = active_chats.chat_id
    ) as newest
from active_chats where active_chats.chat_id is not null order by newest desc limit $3;

-- name: newest_messages_of_chat
select message_id, raw, sent from inbox
where channel = $1 and app = $2 and chat_id = $3 and session_id is not null
order by number desc limit $4;

-- name: history_mark
select checked from history_marks where channel = $1 and app = $2;

-- name: save_history_mark
insert into history_marks (channel, app, checked) values ($1, $2, $3)
on conflict (channel, app) do update set checked = excluded.checked
where history_marks.checked < excluded.checked;

-- name: note_reaction
update inbox set reaction = $4, reaction_run = $5
where channel = $1 and app = $2 and message_id = $3;

-- An answer and a command were carried out when they were received: they belong to no run.

-- name: settled_reactions
select inbox.number, inbox.message_id, inbox.reaction,
    case when inbox.run_id is null or runs.status = 'completed' then 1 else 0 end
from inbox left join runs on runs.id = coalesce(inbox.run_id, inbox.reaction_run)
where inbox.channel = $1 and inbox.app = $2 and inbox.reaction <> ''
    and (runs.id is null or runs.status in ('completed', 'failed', 'cancelled'))
order by inbox.number limit $3;

-- name: clear_reaction
update inbox set reaction = '' where number = $1;
