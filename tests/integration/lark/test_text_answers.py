"""Texts that answer a question, by group policy, quote, thread, mention and id."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.questions import QuestionRecord
from internal.settings.chat import ChatAccess, ChatChannelSettings
from internal.simulators.lark.model import Person
from internal.simulators.lark.simulator import LarkSim
from tests.integration.lark.test_access import card_of, open_questions
from tests.support.agent_app import plan
from tests.support.anthropic_server import Call, Fault, Reply
from tests.support.chat_settings import with_values
from tests.support.lark_gateway import APP, QUIET, LarkGateway, open_lark_gateway

TOUCH = Call("shell", {"command": "touch ran"})
COLOURS = Call("request_user", {"question": "Which colour?", "options": ["red", "green"]})
SCRIPTS = {
    "approval": [Reply(calls=[plan("do it")]), Reply(calls=[TOUCH]), Reply("over")],
    "plan": [Reply(calls=[plan("dig", "plant")]), Reply("over")],
    "recovery": [Reply("over", fault=Fault("status", message="Overloaded", times=1))],
    "clarify": [Reply(calls=[COLOURS]), Reply("over"), Reply("another")],
}
YES = {"en": "OK", "zh": "好"}


class GroupQuestion:
    """An open question in a group whose messages the bot all receives; `boss` is its operator."""

    def __init__(self, lark: LarkGateway, asked: QuestionRecord, card: str, task: str) -> None:
        self.lark, self.asked, self.card, self.task = lark, asked, card, task
        self.asker, self.boss, self.colleague = lark.sim.people[:3]

    @property
    def id(self) -> str:
        return self.asked.question.id[-6:]

    async def say(
        self,
        text: str,
        *,
        to: str = "",
        in_thread: bool = False,
        mention: bool = False,
        by: Person | None = None,
    ) -> str:
        """Send a message to the group, by default as the operator."""
        return await self.lark.sim.send_text(
            by or self.boss,
            self.lark.group,
            text,
            reply_to=to,
            in_thread=in_thread,
            mention_bot=mention,
        )

    async def chatter(self) -> str:
        """Let the colleague write a text that the bot does not take as addressed to it."""
        state = self.lark.sim.lark.state
        state.apps[APP.app_id] = replace(self.lark.sim.app, hears_all=False)
        said = await self.say("Shall we have lunch?", by=self.colleague)
        state.apps[APP.app_id] = replace(self.lark.sim.app, hears_all=True)
        return said

    async def response_to(self, said: Awaitable[str]) -> tuple[list[str], list[str]]:
        """Return the replies and reactions that a message got; the question must stay open."""
        before = len(self.lark.replies(self.lark.group))
        message_id = await said
        await self.lark.settled()
        assert await open_questions(self.lark, 1, self.lark.group) == [self.asked]
        reactions = self.lark.sim.lark.state.messages[message_id].reactions
        replies = self.lark.replies(self.lark.group)[before:]
        return replies, [reaction.emoji for reaction in reactions]

    async def until_answered(self) -> str:
        """Return the name of the person who answered as soon as the run is over."""
        replies = self.lark.replies
        await self.lark.sim.until(lambda _: "over" in replies(self.lark.group))
        queries = self.lark.core.services.gateway.queries
        record = await queries.question(self.asked.question.id, LOCAL_OWNER)
        assert record.answer is not None
        assert record.answer.decision == "approve"
        return record.answer.name


@asynccontextmanager
async def asked_in_group(
    home: Path, kind: str, policy: str = "open", *, in_thread: bool = False
) -> AsyncGenerator[GroupQuestion]:
    """Have the agent ask a question of that kind in a group, or in a thread of it."""
    async with LarkSim([APP], speed=100.0) as sim:
        sim.lark.state.apps[APP.app_id] = replace(sim.app, hears_all=True)
        sim.set_faults(limits=False)
        group = sim.groups[0]
        while len(group.members) < 3:
            group.members.append(sim.people[len(group.members)].open_id)
        settings: ChatChannelSettings = with_values(
            QUIET,
            group_policy=policy,
            plan_review="always" if kind == "plan" else None,
            access=ChatAccess(operate=(sim.people[1].open_id,)),
        )
        async with open_lark_gateway(home, [*SCRIPTS[kind]], settings, sim=sim) as lark:
            root = ""
            if in_thread:
                sim.lark.state.apps[APP.app_id] = replace(sim.app, hears_all=False)
                root = await sim.send_text(sim.people[2], group, "a topic")
                sim.lark.state.apps[APP.app_id] = replace(sim.app, hears_all=True)
            task = await sim.send_text(
                sim.people[0], group, "do it", mention_bot=True, reply_to=root, in_thread=in_thread
            )
            [asked] = await open_questions(lark, 1, group)
            yield GroupQuestion(lark, asked, await card_of(lark, asked), task)


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
