-- What the operators of a chat tell the model to do in it, '' for nothing.

alter table chat_settings add column instructions text not null default '';
