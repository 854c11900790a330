"""Transports: how a `GatewayClient` reaches a gateway.

Reading order: `interface` (what a transport does), `http` (blocking, for commands), `threaded`
(HTTP for sessions), `memory` (the ASGI application of this process), `sse` (the stream format).
"""
