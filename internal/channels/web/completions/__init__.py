"""The model APIs of other programs, answered by tasks.

Reading order: `messages` (what clients send), `transcripts`, `conversation` (how it becomes a turn
of a session), `asked_questions`, `answers`, `run_text`, then the APIs themselves.
"""
