"""Preparation: attachments in the first message."""

import base64
from pathlib import Path

from internal.agent.app.runs.creation import Submission
from internal.agent.app.task_options import TaskOptions, build_run_spec
from internal.agent.domain.principals import LOCAL_OWNER
from tests.support.agent_app import open_agent
from tests.support.anthropic_server import Reply


async def test_attachments_are_part_of_the_first_message(home: Path) -> None:
    png = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    async with open_agent(home, [Reply(text="seen")]) as here:
        put = here.services.attachments.put
        files = (
            await put("dot.png", "image/png", png),
            await put("notes.txt", "text/plain", "云雀 sings".encode()),
            await put("blob.bin", "application/octet-stream", b"\x00\x01\x02"),
        )
        spec = build_run_spec(here.services.defaults, TaskOptions(), LOCAL_OWNER)
        made = await here.services.gateway.submit(
            Submission("look", spec, "web", attachments=files), LOCAL_OWNER
        )
        await here.end_of(made)
        content = here.model.requests[0]["messages"][0]["content"]
        assert content[0]["type"] == "image"
        words = "".join(block.get("text", "") for block in content)
        assert "云雀 sings" in words
        assert 'path="input/blob.bin" media_type="application/octet-stream" size="3"' in words
        assert "[a binary file, not shown]" in words
        assert words.endswith("look")
