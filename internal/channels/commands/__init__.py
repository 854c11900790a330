"""Slash commands of chats and the terminal.

Reading order: `command` (the parts of a command, and the channel as its handler sees it), `records`
(responses of the gateway), `registry` (the commands of every channel), then one module for each of
these. Commands of a single channel are in the package of the channel, and are a `Command` as well.
"""
