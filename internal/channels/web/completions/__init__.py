"""The model APIs of other programs, answered by tasks.

Reading order: `messages` (input of clients), `transcripts`, `conversation` (its conversion to a
turn of a session), `asked_questions`, `answers`, `run_text`, `replies` (replies of a run or of the
plain model), then the APIs themselves: `chat_completions`, `responses`, `models`.
"""
