"""Files of sessions: files from people, files that runs make for them, and their storage.

- `session_files`: attachments and their quotas.
- `unused_files`: files that nothing uses any more, and their removal.
- `input_files`: the attachments of a message, as the model sees them.
- `transcripts`: the words of the recordings of a message.
- `request_images`: the bytes of pictures that a request to a model contains.
- `output_folder`: the folder where files for people are found.
- `artifacts`: the files that runs make for people.
- `worktree_changes`: the changes of subtasks in worktrees, applied by a person.
- `archive`: several files as one ZIP.
"""
