"""What commands administer, as `internal.channels.cli.application` describes it.

- `database`: `larkspur db`, and retention
- `mcp`: `larkspur mcp`
- `skills`: `larkspur skills`
"""
