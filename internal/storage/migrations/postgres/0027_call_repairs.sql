-- How often the calls of models were repaired.

create table call_repairs (
    provider text collate "C" not null,
    model text collate "C" not null,
    kind text collate "C" not null,
    count bigint not null,
    last text collate "C" not null,
    primary key (provider, model, kind)
);
