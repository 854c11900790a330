"""Git, as Larkspur itself runs it: nothing that a repository configures runs.

- `process`: the one function that starts git
- `private_repository`: a repository for the files of a folder, which nobody else writes
- `changes`: the changes in a folder since its last commit
"""
