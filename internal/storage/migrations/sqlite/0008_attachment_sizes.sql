-- The size of each used attachment, for the quota of its holder; 0 for those stored earlier.

alter table attachment_uses add column size bigint not null default 0;
