"""The session in a terminal: a real pseudo terminal, read by pyte."""
