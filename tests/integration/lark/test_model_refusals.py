"""Refusals of a model server in a group: a helpful sentence, and a chat that continues."""

import json
from pathlib import Path
from typing import Any

import pytest

from internal.i18n.chat import ChatPhrases
from internal.i18n.language import Language
from tests import ROOT
from tests.support.lark_chats import code_for
from tests.support.lark_gateway import open_lark_gateway
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import Fault, Reply

ANSWERS = ROOT / "tests/unit/llm/refusals/answers"
WORDS: dict[Language, str] = {"en": "what is this?", "zh": "这是什么"}


def recorded(provider: str, name: str) -> Fault:
    """Return a recorded answer of a provider, once."""
    answer: dict[str, Any] = json.loads((ANSWERS / f"{provider}.json").read_text())[name]
    body = json.dumps(answer["body"])
    return Fault("status", status=answer["status"], body=body, times=1)


@pytest.mark.parametrize(
    ("provider", "name", "language", "code", "help_"),
    [
        ("qwen", "filtered", "zh", "model_message_filtered", "/new"),
        ("openai", "filtered", "en", "model_message_filtered", "/new"),
        ("openai", "no-credit", "zh", "model_no_credit", "/model"),
        ("kimi", "cycle", "en", "model_quota_used_up", "/model"),
        ("openai", "model", "zh", "model_not_found", "/model"),
        ("openai", "region", "en", "model_region_refused", "/model"),
        ("openai", "key", "zh", "model_key_refused", "设置 → 模型"),
        ("openai", "picture-format", "en", "model_picture_refused", "/model"),
    ],
)
async def test_a_group_is_told_what_helps_and_goes_on(
    tmp_path: Path, provider: str, name: str, language: Language, code: str, help_: str
) -> None:
    script = [Reply(fault=recorded(provider, name)), Reply("fine")]
    async with (
        ScriptedOpenAI(script) as server,
        open_lark_gateway(
            tmp_path,
            [],
            environ={
                "LARKSPUR_LLM__PROVIDER": "openai",
                "LARKSPUR_LLM__MODEL": "gpt-x",
                "LARKSPUR_LLM__MAX_RETRIES": "0",
                "LARKSPUR_AGENT__GATES": "off",
                "OPENAI_API_KEY": "key-for-tests",
                "OPENAI_BASE_URL": server.base_url,
            },
        ) as lark,
    ):
        asked = await lark.sim.send_text(lark.person, lark.group, WORDS[language], mention_bot=True)
        [said] = await lark.until_replies(1, lark.group)
        await lark.sim.send_text(lark.person, lark.group, "and now?", mention_bot=True)
        assert (await lark.until_replies(2, lark.group))[1] == "fine"
        [refused, _] = lark.from_bot(lark.group)
    sentence = ChatPhrases(language).ended("error", code)
    assert said == sentence
    assert help_ in sentence
    assert refused.parent_id == asked


@pytest.mark.parametrize(
    ("role", "page", "where"),
    [
        ("owner", "https://agents.example", "https://agents.example/settings/models#key"),
        ("owner", "", "`larkspur models key`"),
        ("operate", "https://agents.example", ""),
    ],
)
@pytest.mark.first_rows(2)
async def test_the_owner_is_led_to_where_a_key_is_entered(
    tmp_path: Path, role: str, page: str, where: str
) -> None:
    environ = {
        "LARKSPUR_LLM__PROVIDER": "openai",
        "LARKSPUR_LLM__MODEL": "gpt-x",
        "LARKSPUR_AGENT__GATES": "off",
        "OPENAI_API_KEY": "key-for-tests",
    }
    if page:
        environ["LARKSPUR_SERVER__PUBLIC_URL"] = page
    async with ScriptedOpenAI([Reply(fault=recorded("openai", "key"))]) as server:
        environ["OPENAI_BASE_URL"] = server.base_url
        async with open_lark_gateway(tmp_path, [], environ=environ) as lark:
            await lark.say(f"/pair {await code_for(lark, role)}")
            await lark.until_replies(1)
            await lark.say(WORDS["en"])
            said = (await lark.until_replies(2))[1]
    sentence = ChatPhrases("en").ended("error", "model_key_refused")
    assert said.startswith(sentence)
    assert where in said
    assert "key-for-tests" not in said
    assert (said == sentence) == (not where)
