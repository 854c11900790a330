"""Displays of runs in their chats: a reaction while a run works, and one message with its progress.

Reading order: `run_display` (all runs of an account), `displayed_run` (one run), `display_state`
(what is stored of it), `run_state` (what the run's events say) and `subtask_states` (what those of
its subtasks say). `stop_button` stops runs from there.
"""
