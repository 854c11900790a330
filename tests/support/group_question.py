"""A question that is asked in a Lark group."""

from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.questions import QuestionRecord
from internal.settings.chat import ChatAccess, ChatChannelSettings
from internal.simulators.lark.model import Person
from internal.simulators.lark.simulator import LarkSim
from tests.support.agent_app import plan
from tests.support.anthropic_server import Call, Fault, Reply
from tests.support.chat_settings import with_values
from tests.support.lark_chats import TOUCH, card_of, open_questions
from tests.support.lark_gateway import APP, QUIET, LarkGateway, open_lark_gateway

COLOURS = Call("request_user", {"question": "Which colour?", "options": ["red", "green"]})


SCRIPTS = {
    "approval": [Reply(calls=[plan("do it")]), Reply(calls=[TOUCH]), Reply("over")],
    "plan": [Reply(calls=[plan("dig", "plant")]), Reply("over")],
    "recovery": [Reply("over", fault=Fault("status", message="Overloaded", times=1))],
    "clarify": [Reply(calls=[COLOURS]), Reply("over"), Reply("another")],
}


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
