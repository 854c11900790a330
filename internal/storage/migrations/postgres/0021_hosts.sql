-- Several hosts that execute the runs of one database.

-- Hosts by name. `marker` is the id in the folder of the workspaces, '' if hosts share that folder;
-- `seen` is when a process of the host last said that it works, '' for never.
create table hosts (
    name text collate "C" primary key,
    marker text collate "C" not null,
    seen text collate "C" not null
);

create unique index hosts_by_marker on hosts (marker) where marker <> '';

-- What all hosts have in common, by kind: workspaces, attachments, home. `marker` is its id.
create table shared_storage (
    kind text collate "C" primary key,
    marker text collate "C" not null
);

-- The newest archive of the workspace of a session. `version` is new with each, and with each move of
-- the session to another host; `sha256` is '' if there is no archive.
create table workspace_archives (
    session_id text collate "C" primary key,
    version text collate "C" not null,
    sha256 text collate "C" not null,
    saved text collate "C" not null
);

-- `host` is where the files of a session are; '' if any host has or gets them.
alter table sessions add column host text collate "C" not null default '';

create index sessions_of_host on sessions (host) where host <> '';

-- The host whose absence the person was told about while the run is queued.
alter table runs add column told_host text collate "C" not null default '';

-- When a process began to remove a file, '' before: whoever stores the same file waits for the end.
alter table file_removals add column begun text collate "C" not null default '';
