-- What commands of a chat reach without approval, as JSON; 'null' leaves it to the settings.

alter table chat_settings add column network text not null default 'null';
