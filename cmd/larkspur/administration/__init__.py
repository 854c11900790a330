"""What commands of the terminal change without a gateway.

- `database`: `larkspur db`
- `mcp_servers`: `larkspur mcp`
- `skills`: `larkspur skills`
"""
