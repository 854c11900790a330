-- What the lists of sessions show and filter by. `named`: a person, a plan or a model chose the title.
-- `ended` is when the newest ended run ended, `seen` when the session was last read. `workspace` is
-- the folder of the newest task. A session that was there before has been read.

alter table sessions add column pinned bigint not null default 0;
alter table sessions add column archived bigint not null default 0;
alter table sessions add column one_shot bigint not null default 0;
alter table sessions add column named bigint not null default 0;
alter table sessions add column ended text not null default '';
alter table sessions add column seen text not null default '';
alter table sessions add column workspace text not null default '';

update sessions set
    named = case when title = '' then 0 else 1 end,
    ended = updated,
    seen = updated,
    workspace = coalesce(
        (select json_extract(spec, '$.workspace') from tasks where session_id = sessions.id
         order by created desc, id desc limit 1), ''
    );

create index sessions_pinned_first on sessions (pinned, updated, id);

create index sessions_of_owner_pinned_first on sessions (owner, pinned, updated, id);
