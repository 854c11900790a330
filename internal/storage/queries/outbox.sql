-- Statements for SQLite and PostgreSQL. `-- name:` names the statement below it.
-- $1, $2 … are its values in order.

-- name: insert_outgoing_message
insert into outbox (
    key, channel, app, chat_id, reply_to, run_id, stop_reason, status, attempts, next_attempt,
    created, remote_id, failure, error, body, question_id,
    attachments
) values ($1, $2, $3, $4, $5, $6, $7, 'pending', 0, '', $8, '', '', $9, $10, $11, $12)
on conflict (key) do nothing
returning number;

-- name: due_messages
select number, key, channel, app, chat_id, reply_to, run_id, stop_reason, error, body,
    question_id, attachments, attempts, first_attempt, unknown_since, isolated_failures
from outbox
where channel = $1 and app = $2 and status = 'pending'
    and (next_attempt <= $3 or next_attempt > $6)
    and not exists (
        select 1 from outbox as earlier
        where earlier.channel = outbox.channel and earlier.app = outbox.app
            and earlier.chat_id = outbox.chat_id and earlier.status = 'pending'
            and earlier.number < outbox.number
            and (
                earlier.reply_to = outbox.reply_to
                or (earlier.run_id <> '' and earlier.run_id = outbox.run_id)
                or not exists (
                    select 1 from outbox as failing
                    where failing.channel = earlier.channel and failing.app = earlier.app
                        and failing.chat_id = earlier.chat_id and failing.status = 'pending'
                        and failing.number <= earlier.number
                        and failing.isolated_failures > 0 and failing.first_attempt <= $5
                        and (
                            failing.reply_to = earlier.reply_to
                            or (failing.run_id <> '' and failing.run_id = earlier.run_id)
                        )
                )
            )
    )
order by number limit $4;

-- name: begin_attempt
update outbox set attempts = attempts + 1, first_attempt = coalesce(first_attempt, $2),
    unknown_since = coalesce(unknown_since, $2)
where number = $1 and status = 'pending'
    and ($3 = '' or exists (select 1 from leaderships where name = $3 and fence = $4))
returning attempts;

-- name: postpone_message
update outbox set next_attempt = $2, failure = $3, isolated_failures = isolated_failures + $4,
    unknown_since = case when $5 = 1 then unknown_since else null end
where number = $1 and status = 'pending';

-- name: settle_message
update outbox set status = $2, remote_id = $3, failure = $4, settled = $5, sent = $6
where number = $1 and status = 'pending' returning number;

-- name: pending_files
select key, attachments from outbox
where channel = $1 and app = $2 and chat_id = $3 and run_id = $4 and status = 'pending'
    and attachments <> '[]'
order by number;

-- name: settle_contained
update outbox set status = 'sent', remote_id = $2, failure = '', settled = $3
where key = $1 and status = 'pending';

-- name: pending_beside
select pending.number from outbox
join outbox as pending on pending.channel = outbox.channel and pending.app = outbox.app
    and pending.chat_id = outbox.chat_id and pending.status = 'pending'
where outbox.number = $1 limit 1;

-- name: outgoing_state
select status, remote_id from outbox where key = $1;

-- name: drop_messages
update outbox set status = 'dropped', failure = $4, settled = $5
where channel = $1 and app = $2 and chat_id = $3 and status = 'pending' returning number;

-- A message whose attempt has no outcome yet may have been sent. A dead one was announced otherwise.

-- name: visible_since
select coalesce(
    nullif(sent, ''), unknown_since, case when status = 'pending' then null else first_attempt end
)
from outbox where key = $1;

-- name: remote_id
select remote_id from outbox where key = $1 and status = 'sent';

-- name: sent_since
select remote_id from outbox
where channel = $1 and app = $2 and chat_id = $3 and status = 'sent' and settled >= $4;

-- name: question_of_message
select question_id from outbox
where remote_id = $1 and question_id <> '' and status = 'sent' limit 1;

-- name: unsent_messages
select number, key, channel, app, chat_id, reply_to, run_id, stop_reason, error, body,
    question_id, attachments, status, failure, settled, attempts,
    coalesce((
        select tasks.instruction from runs join tasks on tasks.id = runs.task_id
        where runs.id = outbox.run_id
    ), '')
from outbox where status in ('dead', 'unconfirmed') order by number desc limit $1;

-- name: resend_message
update outbox set status = 'pending', attempts = 0, first_attempt = null, next_attempt = '',
    created = $2, settled = null, failure = '', unknown_since = null, isolated_failures = 0
where number = $1 and status = $3 returning key;

-- name: unsent_message_status
select status from outbox where number = $1 and status in ('dead', 'unconfirmed');

-- name: dismiss_unsent_message
update outbox set status = 'dropped'
where number = $1 and status in ('dead', 'unconfirmed') returning key;

-- name: dead_letter_count
select (select count(*) from inbox where status = 'failed'),
    (select count(*) from outbox where status in ('dead', 'unconfirmed')),
    (select count(*) from runs
    where status = 'failed' and crashes > 0 and crashes >= $1 and subtask is null);

-- name: outbox_backlog
select
    (select count(*) from outbox
    where channel = $1 and app = $2 and status = 'pending' and created < $3),
    (select count(*) from outbox
    where channel = $1 and app = $2 and status in ('dead', 'unconfirmed') and settled >= $4);

-- name: delete_outbox_of_session
delete from outbox where run_id in (select id from runs where session_id = $1);

-- name: sent_message
select outbox.question_id, coalesce(runs.session_id, '')
from outbox left join runs on runs.id = outbox.run_id
where outbox.remote_id = $3 and outbox.remote_id <> ''
    and outbox.channel = $1 and outbox.app = $2 limit 1;

-- name: answer_of_message
select runs.task_id, runs.id from outbox join runs on runs.id = outbox.run_id
where outbox.remote_id = $3 and outbox.remote_id <> '' and outbox.channel = $1
    and outbox.app = $2 and outbox.question_id = '' and outbox.status = 'sent' limit 1;
