"""Types of settings: the sections with their keys, defaults and checks.

They do no I/O: `internal.config` reads the values, and each package receives its own section.
Reading order: `types`, `messages`, `entered_text`; the sections `server`, `chat`, `lark`, `llm` and
`hooks`; and `settings`, which has the other sections and composes all.
"""
