"""Files of sessions: what people send, what runs make for them, and where the bytes are kept.

- `session_files`: attachments and their quotas.
- `unused_files`: what nothing uses any more, and its removal.
- `input_files`: the attachments of a message, as the model sees them.
- `transcripts`: the words of the recordings of a message.
- `request_images`: the bytes of pictures that a request to a model contains.
- `output_folder`: the folder where files for people are found.
- `artifacts`: the files that runs make for people.
- `worktree_changes`: the changes of subtasks in worktrees, applied by a person.
- `archive`: several files as one ZIP.
"""
