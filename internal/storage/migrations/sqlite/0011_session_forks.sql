-- The session that a session was branched from, with a copy of its messages up to there; '' for none.

alter table sessions add column forked_from text not null default '';
