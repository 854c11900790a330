"""Tests of internal/worktrees."""
