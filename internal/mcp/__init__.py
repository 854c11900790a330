"""MCP servers as a source of tools.

Reading order: `definitions` (one server as it is written), `definition_files` (all of them),
`launch` (what a command lacks to start),
`manifest` (the tools that a server lists), `pins` (what a person has accepted), `private_files`
(files that processes share), `limits` (bounds of what servers send), `sdk_client` (a connection of
the `mcp` SDK, over `stdio_transport` or `http_transport`), `connection` (the task that owns it),
`servers` (all servers and their states), `results` (what a call returns), `elicitation` (what a
call asks people for), `tool_source` (the tools) and `server_reviews` (reviews from any channel).
"""
