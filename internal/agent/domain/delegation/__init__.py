"""Delegation: tasks that a run creates for other runs.

- `subtask`: the place of such a task.
- `state`: the state of a run with subtasks.
- `requests`: the arguments of the tools, and their errors.
- `rights`: the rights of a subtask, at most the rights of its creator.
- `reports`: the sentences that the model and people read about ended subtasks.
"""
