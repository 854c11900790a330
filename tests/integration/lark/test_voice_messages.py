"""Voice messages in Lark: transcribed for the model, or answered politely without it."""

from pathlib import Path

import pytest

from internal.i18n.chat import ChatPhrases
from tests.support import recordings
from tests.support.agent_app import plan
from tests.support.anthropic_server import Reply
from tests.support.lark_chats import send_file
from tests.support.lark_gateway import open_lark_gateway
from tests.support.lark_runs import user_texts
from tests.support.transcription_server import Spoken, TranscriptionServer

VOICE = recordings.ogg_opus(5.0)
EN, ZH = (ChatPhrases(language)("voice_not_heard") for language in ("en", "zh"))


async def test_a_voice_message_is_heard(tmp_path: Path) -> None:
    async with (
        TranscriptionServer(Spoken("明天十点见。")) as server,
        open_lark_gateway(tmp_path, [Reply("好的")], environ=server.environ) as lark,
    ):
        await send_file(lark, "", VOICE, "audio")
        assert await lark.until_replies(1) == ["好的"]
        [text] = user_texts(lark.core.model.requests[-1])
    assert 'media_type="audio/ogg"' in text
    assert 'seconds="5.0">\n[transcript]\n明天十点见。\n</attachment>' in text
    assert [request.content for request in server.requests] == [VOICE]


@pytest.mark.parametrize(("setting", "answer"), [("auto", f"{EN}\n\n{ZH}"), ("en", EN), ("zh", ZH)])
async def test_without_a_service_a_voice_message_is_answered_without_the_model(
    tmp_path: Path, setting: str, answer: str
) -> None:
    environ = {"LARKSPUR_UI__LANGUAGE": setting}
    async with open_lark_gateway(tmp_path, [Reply("never")], environ=environ) as lark:
        await send_file(lark, "", VOICE, "audio")
        assert await lark.until_replies(1) == [answer]
        await lark.settled()
        assert lark.core.model.count == 0
        assert lark.replies() == [answer]


async def test_the_answer_is_in_the_language_of_earlier_messages(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("你好")]) as lark:
        await lark.say("你好")
        await lark.until_replies(1)
        for count in (2, 3):
            await send_file(lark, "", VOICE, "audio")
            assert (await lark.until_replies(count))[-1] == ZH
        assert lark.core.model.count == 1


async def test_the_conversation_continues_after_such_an_answer(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("Typed.")]) as lark:
        await send_file(lark, "", VOICE, "audio")
        await lark.until_replies(1)
        await lark.say("I typed it")
        assert (await lark.until_replies(2))[-1] == "Typed."
        said = str(lark.core.model.requests[-1]["messages"])
    assert EN in said
    assert "I typed it" in said


async def test_a_failure_of_the_service_is_said_with_the_reply(tmp_path: Path) -> None:
    failure = Spoken(status=400, message="The file is damaged.")
    async with (
        TranscriptionServer(failure) as server,
        open_lark_gateway(tmp_path, [Reply("Please type.")], environ=server.environ) as lark,
    ):
        await send_file(lark, "", VOICE, "audio")
        [reply] = await lark.until_replies(1)
    assert reply.startswith("Please type.")
    assert "The file is damaged." in reply


async def test_a_voice_message_during_a_run_is_heard_by_that_run(tmp_path: Path) -> None:
    script = [Reply(calls=[plan("wait")], hold="go"), Reply("At eleven.")]
    async with (
        TranscriptionServer(Spoken("Make it eleven.")) as server,
        open_lark_gateway(tmp_path, script, environ=server.environ) as lark,
    ):
        await lark.say("Meet at ten")
        await lark.core.model.until_open(1)
        sent = await send_file(lark, "", VOICE, "audio")
        await lark.sim.until(lambda _: lark.sim.lark.state.messages[sent].reactions)
        lark.core.model.release("go")
        assert await lark.until_replies(1) == ["At eleven."]
        text = user_texts(lark.core.model.requests[-1])[-1]
    assert "[transcript]\nMake it eleven.\n</attachment>" in text
    assert server.count == 1
