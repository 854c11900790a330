"""Texts that answer a question, by group policy, quote, thread, mention and id."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from internal.agent.domain.principals import LOCAL_OWNER
from internal.settings.chat import ChatAccess
from tests.support.chat_settings import with_values
from tests.support.group_question import SCRIPTS, asked_in_group
from tests.support.lark_chats import open_questions
from tests.support.lark_gateway import QUIET, open_lark_gateway

YES = {"en": "OK", "zh": "好"}


@pytest.mark.parametrize("language", YES)
@pytest.mark.parametrize("kind", ["approval", "plan", "recovery"])
@pytest.mark.first_rows(2)
async def test_words_to_colleagues_answer_nothing_and_get_no_response(
    tmp_path: Path, kind: str, language: str
) -> None:
    async with asked_in_group(tmp_path, kind) as one:
        yes, other = YES[language], await one.chatter()
        silent: list[Callable[[], Awaitable[str]]] = [
            lambda: one.say(yes),
            lambda: one.say(yes, by=one.asker),
            lambda: one.say(yes, to=other),
            lambda: one.say(yes, to=one.task),
            lambda: one.say(yes, to=other, in_thread=True),
            lambda: one.say(yes, to=one.card, in_thread=True),  # perhaps to a colleague there
            lambda: one.say(f"{yes} none-7", to=other),
        ]
        for number, send in enumerate(silent):
            assert await one.response_to(send()) == ([], []), number
        which = "Which question do you mean?" if language == "en" else "你指的是哪个问题"
        elsewhere = "asked elsewhere" if language == "en" else "其他位置"
        refused: list[tuple[Callable[[], Awaitable[str]], str]] = [
            (lambda: one.say(yes, to=other, mention=True), which),
            (lambda: one.say(f"{yes} {one.id}", to=other), elsewhere),
        ]
        command = "/approve" if language == "en" else "/同意"
        refused += [
            (lambda: one.say(command), which),
            (lambda: one.say(f"{command} {one.id}", to=other), elsewhere),
            (lambda: one.say(f"{command} {one.id}", to=other, mention=True), elsewhere),
        ]
        for send, part in refused:
            replies, reactions = await one.response_to(send())
            assert part in "".join(replies)
            assert reactions == []
        assert not list((tmp_path / "workspaces").glob("*/ran"))


@pytest.mark.parametrize("language", YES)
@pytest.mark.parametrize("kind", ["approval", "plan", "recovery"])
@pytest.mark.parametrize(
    "way", ["reply", "mention", "reply and mention", "id", "command", "command and mention"]
)
@pytest.mark.first_rows(6)
async def test_words_addressed_to_the_bot_answer(
    tmp_path: Path, kind: str, language: str, way: str
) -> None:
    async with asked_in_group(tmp_path, kind) as one:
        yes, command = YES[language], "/approve" if language == "en" else "/同意"
        match way:
            case "reply":
                said = await one.say(yes, to=one.card)
            case "mention":
                said = await one.say(yes, mention=True)
            case "reply and mention":
                said = await one.say(yes, to=one.card, mention=True)
            case "id":
                said = await one.say(f"{yes} {one.id}")
            case "command":
                said = await one.say(f"{command} {one.id}")
            case _:
                said = await one.say(command, mention=True)
        assert await one.until_answered() == one.boss.name
        await one.lark.sim.until(lambda _: one.lark.sim.lark.state.messages[said].reactions)


@pytest.mark.parametrize("policy", ["open", "thread"])
async def test_a_question_in_a_thread_is_answered_in_that_thread(
    tmp_path: Path, policy: str
) -> None:
    async with asked_in_group(tmp_path, "approval", policy, in_thread=True) as one:
        other = await one.chatter()
        silent: list[Callable[[], Awaitable[str]]] = [
            lambda: one.say("OK", to=one.task),
            lambda: one.say("OK", to=other, in_thread=True),
            lambda: one.say("OK"),
        ]
        for send in silent:
            assert await one.response_to(send()) == ([], [])
        refused: list[tuple[Callable[[], Awaitable[str]], str]] = [
            (lambda: one.say("OK", mention=True), "Which question"),
            (lambda: one.say("OK", to=other, in_thread=True, mention=True), "Which question"),
            (lambda: one.say(f"OK {one.id}", mention=True), "asked elsewhere"),
            (lambda: one.say(f"/approve {one.id}", mention=True), "asked elsewhere"),
        ]
        for send, part in refused:
            replies, _ = await one.response_to(send())
            assert part in "".join(replies)
        await one.say("OK", to=one.task, mention=True)
        assert await one.until_answered() == one.boss.name


async def test_a_thread_that_begins_with_the_question_is_its_thread(tmp_path: Path) -> None:
    async with asked_in_group(tmp_path, "approval") as one:
        await one.say("OK", to=one.card, in_thread=True, mention=True)
        assert await one.until_answered() == one.boss.name


@pytest.mark.parametrize("mention", [False, True])
async def test_with_the_mention_policy_a_reply_to_the_card_needs_no_mention(
    tmp_path: Path, mention: bool
) -> None:
    async with asked_in_group(tmp_path, "approval", "mention") as one:
        assert await one.response_to(one.say("OK")) == ([], [])
        await one.say("OK", to=one.card, mention=mention)
        assert await one.until_answered() == one.boss.name


async def test_other_words_to_colleagues_are_no_feedback_on_a_plan(tmp_path: Path) -> None:
    async with asked_in_group(tmp_path, "plan") as one:
        replies, _ = await one.response_to(one.say("without digging"))
        assert replies == ["over"]  # it was a task of its own


async def test_a_question_for_information_takes_plain_text_of_its_thread(tmp_path: Path) -> None:
    async with asked_in_group(tmp_path, "clarify") as one:
        other = await one.chatter()
        assert await one.response_to(one.say("OK", to=other)) == ([], [])
        assert await one.response_to(one.say("OK", to=other, in_thread=True)) == ([], [])
        assert await one.response_to(one.say("OK", by=one.colleague)) == ([], [])
        await one.say("2")
        await one.lark.sim.until(lambda _: "over" in one.lark.replies(one.lark.group))
        queries = one.lark.core.services.gateway.queries
        record = await queries.question(one.asked.question.id, LOCAL_OWNER)
        assert record.answer is not None
        assert record.answer.text == "green"


@pytest.mark.parametrize("kind", ["approval", "clarify"])
async def test_in_a_direct_chat_a_quote_of_something_else_is_no_answer(
    tmp_path: Path, kind: str
) -> None:
    settings = with_values(QUIET, access=ChatAccess(operate=("*",)))
    async with open_lark_gateway(tmp_path, [*SCRIPTS[kind]], settings) as lark:
        task = await lark.say("do it")
        asked = await open_questions(lark, 1)
        for text in ("OK", "/approve"):
            await lark.say(text, reply_to=task)
            await lark.settled()
            assert "Which question do you mean?" in lark.replies()[-1]
        assert await open_questions(lark, 1) == asked
        await lark.say("OK")
        assert (await lark.until_replies(3))[2] == "over"
