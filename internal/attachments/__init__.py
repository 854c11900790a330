"""Storage of attachments.

- `local`: `LocalAttachments`, files in a folder named by the hash of their content
- `partial_uploads`: `PartialUploads`, what was received of uploads that were cut off
"""
