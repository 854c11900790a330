-- What model servers refused once and is not sent again.

-- `model` is '' for all models of an address; `change` is JSON.
create table model_lessons (
    provider text not null,
    address text not null,
    model text not null,
    kind text not null,
    name text not null,
    change text not null,
    words text not null,
    version text not null,
    learned text not null,
    primary key (provider, address, model, kind, name)
);
