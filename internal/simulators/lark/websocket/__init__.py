"""The long connection: discovery, frames, event delivery and acknowledgements.

Reading order: `endpoint` (discovery and handshake), `connection` (one client), `delivery` (which
connection gets an event, redelivery), `frames` (the binary format).
"""
