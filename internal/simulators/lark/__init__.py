"""A local Lark to try the gateway with, and to test it against. It is a simulator and says so.

The gateway knows nothing of this room, and this room nothing of the gateway: they meet on the wire,
as Lark and any app would. What it does not model is listed in docs/lark-sim.md.
"""
