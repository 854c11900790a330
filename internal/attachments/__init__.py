"""Storage of attachments.

- `content`: pieces of file content: reading, joining and verifying them
- `spool`: `Spool`, files that are being stored, and the lock between storing and removing
- `local`: `LocalAttachments`, files in a folder named by the hash of their content
- `s3_client`: `S3Client`, requests to a storage service that speaks S3
- `s3`: `S3Attachments`, objects in a bucket named by the hash of their content
- `upload_folder`: `UploadFolder`, the received parts of interrupted uploads
"""
