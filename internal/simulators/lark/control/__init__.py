"""The control API under `/_sim/`, used by the chat page and by tests in another process.

Reading order: `api` (routes, key and origin checks), `actions` (one request type per action).
"""
