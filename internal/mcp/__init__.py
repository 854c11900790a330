"""MCP servers as a source of tools.

Reading order: `definitions` (one server as it is written, with `server_names`), `definition_files`
(all of them, in `relaxed_json`), `foreign_entries` and `foreign_files` (those of other programs),
`launch` (what a command lacks to start), `packages` (what downloaders would download),
`manifest` (the tools that a server lists), `pins` (what a person has accepted), `private_files`
(files that processes share), `limits` (bounds of what servers send), `sdk_client` (a connection of
the `mcp` SDK, over `stdio_transport`, `http_transport` or `sse_transport`), `server_tasks` (calls
that are run as tasks), `server_messages` (what servers log), `connection` (the task that owns it),
`servers` (all servers and their states), `default_arguments` (what a call may leave out), `results`
(what a call returns, with `encoded_files` and `repeated_content`), `elicitation` (what a call asks
people for), `tool_source` (the tools) and `server_reviews` (reviews from any channel).
"""
