"""Worktrees of git repositories for subtasks.

- `repository`: checks that a folder is a repository of its own, and reads its state
- `worktrees`: makes worktrees, and takes their changes over
"""
