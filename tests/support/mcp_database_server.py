"""An MCP server whose driver has no proxy support; standard library only.

Its arguments are PostgreSQL addresses as HOST:PORT. It lists one tool per address. The description
of the tool is the server's answer to a TLS request: N, or the name of an error.
"""

import json
import socket
import struct
import sys
from typing import Any

TLS_REQUEST = struct.pack("!II", 8, 80877103)


def ask(site: str) -> str:
    host, _, port = site.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), 10) as database:
            database.sendall(TLS_REQUEST)
            return database.recv(1).decode() or "nothing"
    except OSError as error:
        return type(error).__name__


def answer(method: str, version: str) -> dict[str, Any]:
    if method == "initialize":
        server = {"name": "database", "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        schema = {"type": "object", "properties": {}}
        tools = [
            {"name": f"ask_{number}", "description": ask(site), "inputSchema": schema}
            for number, site in enumerate(sys.argv[1:])
        ]
        return {"tools": tools}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        version = message.get("params", {}).get("protocolVersion", "2025-11-25")
        result = answer(message["method"], version)
        answered = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        sys.stdout.write(f"{json.dumps(answered)}\n")
        sys.stdout.flush()
