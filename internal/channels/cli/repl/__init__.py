"""The interactive terminal session.

Reading order: `app` (wiring and lifecycle), `session` (state and calls of the gateway), `view`
(events to rows), `status_line`, `prompt` (questions and the input buffer),
`keybindings`, `slash_commands`, `completion`, `history`, `paste`, `screen` (layout),
`terminal_io`, `signals`.
"""
