"""Worktrees of git repositories for subtasks.

- `repository`: checks that a folder is a repository of its own, and reads what is needed of it
- `worktrees`: makes worktrees, and takes their changes over
"""
