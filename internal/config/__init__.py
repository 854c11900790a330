"""Settings: their types and defaults, the loader, the home folder, and processes of the machine.

Reading order: `settings` with its sections `server`, `chat`, `lark` and `llm`, `types`, `loader`,
`yaml_document`, `messages`, `setting_keys`, `inspect`, `reference`, `home`, `processes`,
`terminal_env`.
"""
