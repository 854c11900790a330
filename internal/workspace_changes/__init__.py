"""The files of a workspace that runs made, changed or deleted, with their states before and after.

A workspace is walked when a run first uses files, and again when the run ends or waits. Both walks
are compared with the last one, which is stored: only files with another identity are read, and only
if the next calls may change them.

- `walk`: the files below an open folder, without following any link.
- `contents`: the contents that are kept, and the contents that are never kept.
- `records`: the stored walk, the kept contents and the changes of runs, one database a workspace.
- `git_contents`: contents that a repository has already.
- `comparison`: a walk, compared with the walk before it.
- `restoration`: restoration of files to the state before a change.
- `change_log`: the recorded changes of runs, their diffs and their undoing.
- `tree`: the folders and files of a workspace for people: a list, a search, a preview.
"""
