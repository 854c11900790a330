-- `pruned` is the newest position of an event that was removed because of its age: the log is
-- complete only after it.

alter table event_log add column pruned bigint not null default 0;

-- That this database is moved `from` another one, or was moved `to` another one, which is named by
-- `place`. `epoch` is that of the event log. `finished` is '' until all rows are there.
create table database_moves (
    direction text collate "C" primary key check (direction in ('from', 'to')),
    place text collate "C" not null,
    epoch text collate "C" not null,
    started text collate "C" not null,
    finished text collate "C" not null default ''
);

-- How far a move into this database has come: `last_key` is the key of the last copied row of a
-- table, as JSON, and `state` is copying, copied or verified.
create table database_move_tables (
    name text collate "C" primary key,
    state text collate "C" not null,
    last_key text collate "C" not null
);
