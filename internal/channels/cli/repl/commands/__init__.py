"""Slash commands by subject.

Read `context` first, then `conversation`, `folder` and `shell`. The other commands and the list of
all of them are in `internal.channels.cli.repl.slash_commands`.
"""
