-- Tasks that runs create for other runs.

-- `depends_on` are ids of tasks as JSON. `reports` are the ended subtasks that a task tells about.
-- `reported` is 1 once a run was told, or a task was created that tells.
alter table tasks add column depends_on text not null default '[]';
alter table tasks add column reports text not null default '[]';
alter table tasks add column reported bigint not null default 0;

create index tasks_of_parent on tasks (parent_task_id, created, id)
    where parent_task_id is not null;

-- `subtask` is the place of a run that another one created, as JSON; `root_task_id` the outermost
-- task, null for that itself; `call_group` the call that created it, of whose runs `max_parallel`
-- are started at once. A run starts when `blocked_by`, the number of unfinished tasks that it
-- depends on, is 0. `wait_until` is when a run that waits for tasks goes on regardless.
alter table runs add column subtask text;
alter table runs add column root_task_id text;
alter table runs add column call_group text;
alter table runs add column max_parallel bigint not null default 0;
alter table runs add column blocked_by bigint not null default 0;
alter table runs add column wait_until text;

create index runs_of_root on runs (root_task_id, status) where root_task_id is not null;

create index runs_of_call on runs (call_group, status) where call_group is not null;

create index runs_of_parent on runs (parent_run_id) where parent_run_id is not null;

create index runs_awaiting_tasks on runs (wait_until) where wait_until is not null;

-- What the calls of waiting runs wait for: all tasks of a call, or the first with `any_of` 1.
create table task_waits (
    run_id text not null,
    call_id text not null,
    task_id text not null,
    any_of bigint not null,
    primary key (run_id, call_id, task_id)
);

create index task_waits_of_task on task_waits (task_id);

-- Which tasks a task waits for before it starts; a row goes when its dependency has ended.
create table task_dependencies (
    task_id text not null,
    depends_on text not null,
    primary key (task_id, depends_on)
);

create index task_dependencies_of on task_dependencies (depends_on);
