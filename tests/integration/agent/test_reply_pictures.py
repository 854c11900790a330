"""Pictures in replies of models: files of the run on every channel, and lines in the history."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from tests.support import documents
from tests.support.agent_app import open_agent, sound
from tests.support.lark_gateway import open_lark_gateway
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import Reply

PNG = documents.picture("PNG")
NAME = f"picture-{hashlib.sha256(PNG).hexdigest()[:8]}.png"
LINE = f"[picture: {NAME}]"


def image(content: str) -> dict[str, Any]:
    """Return a picture as OpenRouter sends it."""
    url = f"data:image/png;base64,{content}"
    return {"type": "image_url", "image_url": {"url": url}, "index": 0}


def settings(model: ScriptedOpenAI) -> dict[str, str]:
    return {
        "LARKSPUR_AGENT__GATES": "off",
        "LARKSPUR_LLM__PROVIDER": "openai",
        "LARKSPUR_LLM__MODEL": "painter",
        "OPENAI_BASE_URL": model.base_url,
        "OPENAI_API_KEY": "sk-for-tests-0123456789",
    }


async def test_a_picture_is_a_file_of_the_run_and_a_line_for_the_model(home: Path) -> None:
    drawn = image(base64.b64encode(PNG).decode())
    damaged, elsewhere = image("!!"), {"image_url": {"url": "https://a.test/b.png"}}
    script = [
        Reply("Here it is.", opaque={"images": [drawn, drawn, damaged, elsewhere]}),
        Reply("As I said."),
    ]
    async with (
        ScriptedOpenAI(script) as model,
        open_agent(home, [], settings(model), model) as here,
    ):
        made = await here.submit("draw a lark")
        events = await here.end_of(made)
        sound(events)
        answer = events[-1]["payload"]["final_answer"]
        assert LINE in answer
        assert "Here it is." in answer
        assert "[picture: not kept, its data is damaged]" in answer
        assert "[picture: https://a.test/b.png]" in answer
        (manifest,) = (e for e in events if e["event"] == "workflow.artifact.manifest")
        (shown,) = manifest["payload"]["artifacts"]
        assert (shown["name"], shown["type"]) == (NAME, "image")
        assert await here.services.attachments.get(shown["sha256"]) == PNG
        (lost,) = (e for e in events if e["event"] == "workflow.node.left_out")
        assert (lost["payload"]["what"], lost["payload"]["count"]) == ("reply_pictures", 1)
        again = await here.submit("what did you draw?", made.session_id)
        await here.end_of(again)
        assert LINE in str(model.requests[1]["messages"])
        assert "base64" not in str(model.requests[1])


async def test_a_picture_follows_the_answer_in_lark(tmp_path: Path) -> None:
    drawn = Reply(opaque={"images": [image(base64.b64encode(PNG).decode())]})
    async with (
        ScriptedOpenAI([drawn]) as model,
        open_lark_gateway(tmp_path, [], environ=settings(model)) as lark,
    ):
        await lark.say("draw a lark")
        await lark.sim.until(lambda _: len(lark.from_bot()) == 2)
        await lark.settled()
        answer, picture = lark.from_bot()
        assert NAME in answer.content
        assert picture.msg_type == "image"
        key = json.loads(picture.content)["image_key"]
        assert lark.sim.lark.state.media[key].data == PNG
