-- Up to where each receiver of events has got the event log.

create table event_readers (
    name text primary key,
    position integer not null
);
