"""Administration by the owner. Every change is added to the audit log.

- `skills`: skills and the decisions about them; `mcp_servers`: the same for MCP servers.
- `dead_letters`: messages and runs that were given up, until they are retried or dismissed.
"""
