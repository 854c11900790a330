"""Changes by terminal commands without a gateway.

- `database`: `larkspur db`
- `mcp_servers`: `larkspur mcp`
- `skills`: `larkspur skills`
"""
