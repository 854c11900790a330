-- The profile of a chat's coming tasks; '' leaves it to the settings.

alter table chat_settings add column profile text not null default '';
