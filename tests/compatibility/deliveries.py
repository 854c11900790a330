"""Events that a gateway sent to webhooks, for programs that verify signatures."""

import base64
import json
from pathlib import Path
from typing import Any

from tests.compatibility.place import place
from tests.support.gateway_process import run_task
from tests.support.hook_server import HookServer

PREFIXED = "whsec_" + base64.b64encode(b"a key of thirty-two bytes, known.").decode()
PLAIN = "a-plain-secret-of-a-person"


async def delivered(folder: Path) -> str:
    """Return, as JSON, one delivery signed with each kind of secret: headers, body, secret."""
    async with HookServer() as prefixed, HookServer() as plain:
        webhooks = [
            {"url": server.url, "secret": secret, "events": ["workflow.result.*"]}
            for server, secret in ((prefixed, PREFIXED), (plain, PLAIN))
        ]
        async with place(folder, json.dumps({"webhooks": webhooks})) as where:
            await run_task(where.gateway.client, "case: plain [webhook]")
            found: dict[str, Any] = {}
            for name, server, secret in (
                ("prefixed", prefixed, PREFIXED),
                ("plain", plain, PLAIN),
            ):
                posted = (await server.until(1))[0]
                found[name] = {
                    "headers": posted.headers,
                    "body": posted.body.decode(),
                    "secret": secret,
                }
    return json.dumps(found)
