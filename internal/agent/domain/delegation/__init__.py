"""Delegation: tasks that a run creates for other runs.

- `subtask`: the place of such a task, and what a run waits for.
- `state`: what a run remembers of its subtasks.
- `requests`: the arguments of the tools, and their errors.
- `rights`: what a subtask may do, at most what its creator may.
- `reports`: the sentences that the model and people read about ended subtasks.
"""
