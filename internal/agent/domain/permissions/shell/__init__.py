"""Permission rules for shell commands."""
