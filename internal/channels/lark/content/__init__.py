"""The content of messages.

Reading order: `message_content` (text as Markdown, and files), `item_text` (places, polls, tasks
and other items), `card_text` (cards), `files` (their URIs and download).
"""
