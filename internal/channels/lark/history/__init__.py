"""Messages that were sent before: as text, and those that were not delivered.

Reading order: `message_reader` (what Lark's message API returns), `forwarded` (the messages of a
forwarded bundle), `missed_messages` (those that are not in the inbox).
"""
