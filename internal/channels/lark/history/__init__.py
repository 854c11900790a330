"""Earlier messages: their text, and messages that were not delivered.

Reading order: `message_reader` (responses of Lark's message API), `forwarded` (the messages of a
forwarded bundle), `missed_messages` (messages that are missing from the inbox).
"""
