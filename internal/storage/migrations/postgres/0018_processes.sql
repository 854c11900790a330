-- The processes that serve the database, and which of them leads what only one may do.

drop table gateway;

-- Gateways and workers. `owner` is a process (see `ProcessIdentity`); an entry whose lease is over
-- is removed by any of the others.
create table processes (
    owner text collate "C" primary key,
    role text collate "C" not null check (role in ('gateway', 'channels', 'worker')),
    host text collate "C" not null,
    pid bigint not null,
    version text collate "C" not null,
    started text collate "C" not null,
    lease_until text collate "C" not null
);

-- Who processes and sends the messages of an account, or sends to webhooks. `fence` rises whenever
-- the leader changes; `owner` is '' while there is none.
create table leaderships (
    name text collate "C" primary key,
    owner text collate "C" not null,
    fence bigint not null,
    lease_until text collate "C" not null
);

create index leaderships_of_owner on leaderships (owner);
