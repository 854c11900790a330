"""MCP servers as a source of tools.

Reading order: `definitions` (the entry of one server, with `server_names`), `definition_files` (all
entries, in `relaxed_json`), `foreign_entries` and `foreign_files` (entries of other programs),
`launch` (missing requirements of a command), `packages` (packages that downloaders would download),
`manifest` (the tools that a server lists), `pins` (the tools that a person has accepted),
`private_files` (files that processes share), `limits` (bounds on data from servers), `sdk_client`
(a connection of the `mcp` SDK, over `stdio_transport`, `http_transport` or `sse_transport`),
`server_tasks` (calls that run as tasks), `server_messages` (log messages of servers), `connection`
(the task that owns a connection), `servers` (all servers and their states), `default_arguments`
(optional arguments of a call), `results` (results of a call, with `encoded_files` and
`repeated_content`), `elicitation` (requests for input from people), `tool_source` (the tools) and
`server_reviews` (reviews from any channel).
"""
