"""Displays of runs in their chats: a reaction while a run works, and one message with its progress.

Reading order: `run_display` (all runs of an account), `displayed_run` (one run), `display_state`
(its stored state), `run_state` (state from the run's events) and `subtask_states` (state from the
events of its subtasks). `stop_button` stops runs from there.
"""
