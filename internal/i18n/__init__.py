"""Message catalogues: one JSON file per catalogue and language, such as `chat.en.json`.

Reading order: `language` (the languages), `catalog` (the loader, used directly by the command-line
channel), `runs` (sentences about runs on every channel), `file_reasons` (reasons why files cannot
be used), `chat` (messages and vocabulary of the chat channels), `commands` (the slash commands of
all channels). `completions` has the sentences for chat programs.
"""
