"""Messages that were sent before, as text.

Reading order: `message_reader` (what Lark's message API returns), `forwarded` (the messages of a
forwarded bundle).
"""
