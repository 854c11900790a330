"""What the agent can do: one file a tool or close family, and the roster in `roster.py`.

Importing the package imports no tool: two of its modules run as small programs of their own.
"""
