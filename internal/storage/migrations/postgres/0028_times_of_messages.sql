-- When messages were sent, by the clock of their chat service.

alter table inbox add column sent text collate "C" not null default '';
alter table outbox add column sent text collate "C" not null default '';
