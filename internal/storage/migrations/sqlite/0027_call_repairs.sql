-- How often the calls of models were repaired.

create table call_repairs (
    provider text not null,
    model text not null,
    kind text not null,
    count integer not null,
    last text not null,
    primary key (provider, model, kind)
);
