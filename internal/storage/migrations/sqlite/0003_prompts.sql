-- What the model reads of a message: its text with who wrote it and what it refers to; '' is the
-- text alone.

alter table inbox add column prompt text not null default '';

alter table tasks add column prompt text not null default '';
