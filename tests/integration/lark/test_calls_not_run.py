"""The reply of a run in Lark says that its last calls were not run."""

from pathlib import Path

from tests.support.anthropic_server import Call, Reply
from tests.support.lark_gateway import open_lark_gateway, shown_text


async def test_the_reply_says_that_the_last_call_was_not_run(tmp_path: Path) -> None:
    write = Call("write_file", {"path": "a.txt", "content": "x"})
    async with open_lark_gateway(tmp_path, [Reply(calls=[write]), Reply("Done.")]) as lark:
        await lark.say("write it")
        await lark.until_replies(1)
        await lark.settled()
        (answer,) = lark.from_bot()
        shown = shown_text(lark.sim, answer) or ""
        assert "Done." in shown
        assert "Completed, 1 call was not run" in shown
