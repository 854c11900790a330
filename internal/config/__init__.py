"""Settings: their types and defaults, the loader, and the home folder.

Reading order: `settings` with its sections `server`, `chat`, `lark` and `llm`, `types`, `loader`,
`yaml_document`, `messages`, `setting_keys`, `inspect`, `reference`, `home`,
`process_start`, `terminal_env`.
"""
