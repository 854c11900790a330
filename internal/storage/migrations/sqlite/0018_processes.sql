-- The processes that serve the database, and which of them leads what only one may do.

drop table gateway;

-- Gateways and workers. `owner` is a process (see `ProcessIdentity`); an entry whose lease is over
-- is removed by any of the others.
create table processes (
    owner text primary key,
    role text not null check (role in ('gateway', 'channels', 'worker')),
    host text not null,
    pid bigint not null,
    version text not null,
    started text not null,
    lease_until text not null
);

-- Who processes and sends the messages of an account, or sends to webhooks. `fence` rises whenever
-- the leader changes; `owner` is '' while there is none.
create table leaderships (
    name text primary key,
    owner text not null,
    fence bigint not null,
    lease_until text not null
);

create index leaderships_of_owner on leaderships (owner);
