"""Subtasks: tasks that a run creates for other runs.

- `creation`: stores them, in one transaction.
- `endings`: what the end of a task means to the tasks around it, in the same transaction.
- `results`: reads what they did.
- `tool_source`: the tools with which a model creates, follows and stops them.
- `messages`: what a run tells them, and their stop.
- `progress`: the events about what a subtask does.
"""
