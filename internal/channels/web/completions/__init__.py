"""The model APIs of other programs, answered by tasks.

Reading order: `messages` (what clients send), `transcripts`, `conversation` (how it becomes a turn
of a session), `asked_questions`, `answers`, `run_text`, `replies` (what the APIs deliver: that of a
run or of the plain model), then the APIs themselves: `chat_completions`, `responses`, `models`.
"""
