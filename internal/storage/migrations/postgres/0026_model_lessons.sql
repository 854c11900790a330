-- What model servers refused once and is not sent again.

-- `model` is '' for all models of an address; `change` is JSON.
create table model_lessons (
    provider text collate "C" not null,
    address text collate "C" not null,
    model text collate "C" not null,
    kind text collate "C" not null,
    name text collate "C" not null,
    change text collate "C" not null,
    words text collate "C" not null,
    version text collate "C" not null,
    learned text collate "C" not null,
    primary key (provider, address, model, kind, name)
);
