-- The permission mode of the newest task of a session, and which of its plans were reviewed.

alter table sessions add column permission_mode text collate "C" not null default '';
alter table sessions add column plan_review text collate "C" not null default 'off';

update sessions set
    permission_mode = coalesce(
        (select cast(spec as json) -> 'policy' ->> 'mode' from tasks
         where tasks.id = sessions.last_task_id),
        ''
    ),
    plan_review = coalesce(
        (select cast(spec as json) ->> 'plan_review' from tasks
         where tasks.id = sessions.last_task_id),
        'off'
    );
