"""Commands: one module per command, with `register(subparsers)`.

Reading order: `registry` (the list of commands, dispatch), `parser` (argparse and shared options),
`context` (input of a command), `gateway` (selection of the gateway), `start` and
`start_options` (a session, or one task), then the packages `tasks`, `records` and `system`.
"""
