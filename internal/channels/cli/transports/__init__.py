"""Transports: how a `GatewayClient` sends its requests.

Reading order: `interface` (the protocol), `http` (blocking, for commands), `threaded` (HTTP for
sessions), `memory` (the ASGI application of this process), `sse` (the stream parser).
"""
