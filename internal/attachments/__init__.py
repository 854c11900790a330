"""Storage of attachments.

- `local`: `LocalAttachments`, files in a folder named by the hash of their content
"""
