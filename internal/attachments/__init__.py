"""Storage of attachments.

- `local`: `LocalAttachments`, files in a folder named by the hash of their content
- `upload_folder`: `UploadFolder`, what was received of uploads that were cut off
"""
