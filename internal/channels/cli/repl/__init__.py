"""The interactive terminal: a session with one agent, at a prompt."""
