"""Larkspur as an MCP server: other programs start tasks and read their results.

Reading order: `schemas`, the arguments and results of the tools; `tools`, their functions over the
gateway; `server`, one HTTP request; `sdk_server`, the part that imports the SDK.
"""
