"""Landlock, with which a process restricts itself and its children."""
