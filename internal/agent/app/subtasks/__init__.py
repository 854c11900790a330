"""Subtasks: tasks that a run creates for other runs.

- `creation`: stores them, in one transaction.
- `endings`: the effects of the end of a task on the tasks around it, in the same transaction.
- `results`: reads their results.
- `tool_source`: the tools with which a model creates, follows and stops them.
- `messages`: the messages of a run to them, and their stop.
- `progress`: the events about the activity of a subtask.
"""
