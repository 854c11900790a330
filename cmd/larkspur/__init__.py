"""The `larkspur` program.

Reading order: `main` (entry point), `app` (composition root), `serve` (long-running processes),
`version`.
"""
