"""What messages contain.

Reading order: `message_content` (text as Markdown, and files), `files` (their URIs and download).
"""
