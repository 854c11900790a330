"""Conversations of a chat: which messages share one, and who steers its runs."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.tasks import Task
from internal.settings.chat import ChatAccess, ChatChannelSettings, ChatGroup
from internal.simulators.lark.model import Chat, Person
from internal.simulators.lark.simulator import LarkSim
from tests.support.agent_app import plan
from tests.support.anthropic_server import Call, Reply, Rules
from tests.support.chat_settings import with_values
from tests.support.lark_chats import open_questions
from tests.support.lark_gateway import APP, QUIET, LarkGateway, open_lark_gateway, shown_text
from tests.support.lark_process import served
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import When

OPERATORS = with_values(QUIET, access=ChatAccess(operate=("*",)))
COLOURS = Call("request_user", {"question": "Which colour?", "options": ["red", "green"]})


class GroupChat:
    """A group, by default one with topics, in which three people talk to the bot."""

    def __init__(self, lark: LarkGateway, group: Chat) -> None:
        self.lark, self.group, self.model = lark, group, lark.core.model
        self.mei, self.jonas, self.amara = lark.sim.people[:3]

    async def say(self, text: str, topic: str = "", by: Person | None = None, **more: Any) -> str:
        """Mention the bot, in a topic that begins with that message or in a new one."""
        if topic:
            more |= {"reply_to": topic, "in_thread": True}
        return await self.lark.sim.send_text(
            by or self.mei, self.group, text, mention_bot=True, **more
        )

    def answers(self) -> dict[str, str]:
        """Return the replies of the bot by the ids of the messages that they answer."""
        shown = {one.parent_id: shown_text(self.lark.sim, one) for one in self.posts()}
        return {parent: text for parent, text in shown.items() if text is not None}

    def posts(self) -> list[Any]:
        return self.lark.from_bot(self.group)

    def thread(self, message_id: str) -> str:
        return self.lark.sim.lark.state.messages[message_id].thread_id

    async def until_answered(self, *message_ids: str) -> dict[str, str]:
        """Return the replies as soon as these messages have one."""
        await self.lark.sim.until(lambda _: set(message_ids) <= self.answers().keys())
        return self.answers()

    async def ask(self, text: str, topic: str = "", by: Person | None = None) -> str:
        """Return the reply to a message, the only one on its way in that place."""
        before = len(self.posts())
        message_id = await self.say(text, topic, by)
        await self.lark.sim.until(lambda _: len(self.posts()) > before)
        last = self.posts()[-1]
        assert last.thread_id == self.thread(message_id)
        return shown_text(self.lark.sim, last) or ""

    async def until_confirmed(self, message_id: str) -> None:
        state = self.lark.sim.lark.state
        await self.lark.sim.until(
            lambda _: [each.emoji for each in state.messages[message_id].reactions] == ["OnIt"]
        )

    async def tasks(self) -> list[Task]:
        """Return all tasks, oldest first."""
        return (await self.lark.core.services.gateway.queries.tasks(LOCAL_OWNER))[::-1]

    def said_to_model(self, part: str) -> list[str]:
        """Return the requests to the model that contain a text."""
        requests = (
            json.dumps(each["messages"], ensure_ascii=False) for each in self.model.requests
        )
        return [each for each in requests if part in each]


@asynccontextmanager
async def open_group_chat(
    home: Path,
    script: list[Reply] | Rules,
    settings: ChatChannelSettings = QUIET,
    *,
    topics: bool = True,
) -> AsyncGenerator[GroupChat]:
    """Open a gateway and a group. Limits are off: they are tested elsewhere."""
    async with LarkSim([APP], speed=100.0) as sim:
        sim.set_faults(limits=False)
        people = [each.open_id for each in sim.people]
        group = sim.lark.state.add_group("Team", people, [APP.app_id], topic=topics)
        async with open_lark_gateway(home, script, settings, sim=sim) as lark:
            yield GroupChat(lark, group)


def when(part: str, text: str, **more: Any) -> Reply:
    """Return the reply to the last message of a person with that part."""
    return Reply(text, when=When(last_user=part), **more)


# Topics and scopes


async def test_topics_run_at_once_and_do_not_know_each_other(tmp_path: Path) -> None:
    rules = Rules([when("cats", "on cats", hold="go"), when("dogs", "on dogs"), Reply("more")])
    async with open_group_chat(tmp_path, rules) as chat:
        cats = await chat.say("tell me about cats")
        await chat.model.until_open(1)
        dogs = await chat.say("tell me about dogs")
        assert (await chat.until_answered(dogs))[dogs] == "on dogs"
        chat.model.release("go")
        assert (await chat.until_answered(cats))[cats] == "on cats"
        assert await chat.ask("and their ears?", dogs) == "more"
        [last] = chat.said_to_model("ears")
        assert "dogs" in last
        assert "cats" not in last
        assert not [each for each in chat.said_to_model("dogs") if "cats" in each]
        parents = {one.parent_id: one.thread_id for one in chat.posts()}
        assert {each: chat.thread(each) for each in parents} == parents
        assert len({*parents.values()}) == 2


async def test_commands_act_on_the_topic_that_they_are_sent_in(tmp_path: Path) -> None:
    rules = Rules([when("cats", "on cats", hold="go"), Reply("fresh")])
    async with open_group_chat(tmp_path, rules, OPERATORS) as chat:
        cats = await chat.say("tell me about cats")
        await chat.model.until_open(1)
        other = await chat.say("hello")
        assert (await chat.until_answered(other))[other] == "fresh"
        assert (await chat.ask("/status", other)).startswith("Nothing is running.\n")
        assert "cats" not in await chat.ask("/tasks", other)
        assert "othing" in await chat.ask("/stop", other)
        await chat.ask("/new", other)
        assert "cats" in await chat.ask("/status", cats)
        [task, _] = await chat.tasks()
        await chat.say(f"/stop {task.id[-6:]}", other)
        await chat.lark.sim.until(lambda _: "Stopped." in str(chat.answers().get(cats)))


async def test_a_question_of_a_topic_is_answered_with_words_in_that_topic(tmp_path: Path) -> None:
    rules = Rules(
        [
            Reply("painted", when=When(last_user="paint", results=1)),
            Reply(calls=[COLOURS], when=When(last_user="paint")),
            Reply("a number", when=When(last_user="2")),
        ]
    )
    async with open_group_chat(tmp_path, rules, OPERATORS) as chat:
        paint = await chat.say("paint it")
        [asked] = await open_questions(chat.lark, 1, chat.group)
        other = await chat.say("2")
        assert (await chat.until_answered(other))[other] == "a number"
        assert await open_questions(chat.lark, 1, chat.group) == [asked]
        await chat.say("2", paint)
        await chat.lark.sim.until(lambda _: "painted" in [*chat.lark.replies(chat.group)])
        queries = chat.lark.core.services.gateway.queries
        record = await queries.question(asked.question.id, LOCAL_OWNER)
        assert record.answer is not None
        assert record.answer.text == "green"


async def test_progress_questions_and_files_of_a_topic_stay_in_it(tmp_path: Path) -> None:
    rules = Rules(
        [
            Reply(calls=[plan("look")], when=When(all_results=0)),
            Reply(calls=[Call("list_dir", {"path": "."})], when=When(all_results=1)),
            Reply(calls=[COLOURS], when=When(all_results=2), hold="go"),
            Reply("painted", when=When(all_results=3)),
        ]
    )
    settings = with_values(OPERATORS, progress="card", react_emoji="off")
    async with open_group_chat(tmp_path, rules, settings) as chat:
        threads = [chat.thread(await chat.say(text)) for text in ("paint the door", "and the roof")]
        await chat.lark.sim.until(lambda _: threads_of_cards(chat, "Working") == sorted(threads))
        chat.model.release("go")
        await open_questions(chat.lark, 2, chat.group)
        await chat.lark.sim.until(
            lambda _: threads_of_cards(chat, "Which colour?") == sorted(threads)
        )
        roots = {each.thread_id: each.root_id for each in chat.posts()}
        for thread in threads:
            await chat.say("1", roots[thread])
        await chat.lark.sim.until(lambda _: threads_of_cards(chat, "painted") == sorted(threads))
        assert len([*(tmp_path / "workspaces").iterdir()]) == 2


def threads_of_cards(chat: GroupChat, part: str) -> list[str]:
    """Return the threads of the cards that show a text, sorted."""
    cards = {one.message_id: chat.lark.sim.card(one.message_id) for one in chat.posts()}
    shown = {each for each, card in cards.items() if part in json.dumps(card)}
    return sorted(chat.thread(each) for each in shown)


PLACES = {
    "chat": ["a", "a", "a", "a"],
    "thread": ["a", "a", "b", "b"],
    "sender": ["a", "b", "a", "b"],
    "thread_sender": ["a", "b", "c", "d"],
}


@pytest.mark.parametrize("scope", PLACES)
async def test_a_scope_says_which_messages_share_a_conversation(tmp_path: Path, scope: str) -> None:
    settings = with_values(QUIET, session_scope=scope)
    async with open_group_chat(tmp_path, Rules([Reply("yes")]), settings, topics=False) as chat:
        root = await chat.lark.sim.send_text(chat.amara, chat.group, "a thread")
        for topic in ("", root):
            for person in (chat.mei, chat.jonas):
                assert await chat.ask("hello", topic, person) == "yes"
        sessions = [task.session_id for task in await chat.tasks()]
        names = dict(zip(dict.fromkeys(sessions), "abcd", strict=False))
        assert [names[each] for each in sessions] == PLACES[scope]


async def test_a_group_may_have_a_scope_of_its_own(tmp_path: Path) -> None:
    async with LarkSim([APP], speed=100.0) as sim:
        groups = {sim.groups[0].chat_id: ChatGroup(session_scope="sender")}
        settings = with_values(QUIET, groups=groups)
        async with open_lark_gateway(tmp_path, Rules([Reply("yes")]), settings, sim=sim) as lark:
            for group, count in zip(sim.groups, (2, 3), strict=True):
                chat = GroupChat(lark, group)
                for person in (chat.mei, chat.jonas):
                    assert await chat.ask("hello", by=person) == "yes"
                assert len({task.session_id for task in await chat.tasks()}) == count


async def test_in_personal_conversations_plain_words_answer_only_own_questions(
    tmp_path: Path,
) -> None:
    rules = Rules(
        [
            Reply("painted", when=When(last_user="paint", results=1)),
            Reply(calls=[COLOURS], when=When(last_user="paint")),
            Reply("a number", when=When(last_user="2")),
        ]
    )
    settings = with_values(OPERATORS, session_scope="sender")
    async with open_group_chat(tmp_path, rules, settings, topics=False) as chat:
        await chat.say("paint it")
        await open_questions(chat.lark, 1, chat.group)
        other = await chat.say("2", by=chat.jonas)
        assert (await chat.until_answered(other))[other] == "a number"
        await open_questions(chat.lark, 1, chat.group)
        await chat.say("2")
        await chat.lark.sim.until(lambda _: "painted" in [*chat.lark.replies(chat.group)])


@pytest.mark.slow
async def test_topics_and_waiting_messages_survive_a_kill(tmp_path: Path) -> None:
    rules = Rules(
        [
            when("birds", "on birds"),
            when("cats", "on cats", hold="go"),
            when("dogs", "on dogs", hold="go"),
        ]
    )
    async with LarkSim([APP], speed=500.0) as sim, ScriptedOpenAI(rules) as model:
        sim.set_faults(limits=False)
        mei, jonas = sim.people[:2]
        group = sim.lark.state.add_group(
            "GroupChat", [mei.open_id, jonas.open_id], [APP.app_id], topic=True
        )
        async with served(tmp_path, sim, model) as gateway:
            await sim.until(lambda _: sim.lark.delivery.connections, 60)
            cats = await sim.send_text(mei, group, "cats", mention_bot=True)
            dogs = await sim.send_text(jonas, group, "dogs", mention_bot=True)
            await model.until_open(2)
            birds = await sim.send_text(
                jonas, group, "birds", mention_bot=True, reply_to=cats, in_thread=True
            )
            messages = sim.lark.state.messages
            await sim.until(
                lambda _: "OnIt" in {each.emoji for each in messages[birds].reactions}, 60
            )
            gateway.kill()
            await gateway.over()
        model.release("go")
        expected = [(cats, "on birds"), (cats, "on cats"), (dogs, "on dogs")]
        async with served(tmp_path, sim, model):
            await sim.until(lambda _: answers_by_topic(sim, group) == sorted(expected), 60)


def answers_by_topic(sim: LarkSim, group: Chat) -> list[tuple[str, str]]:
    """Return the replies of the bot with the first messages of their topics, sorted."""
    posts = [one for one in sim.messages(group) if one.sender_type == "app"]
    return sorted((one.root_id, text) for one in posts if (text := shown_text(sim, one)))


# Steering

BUSY = Rules(
    [
        Reply("on cats", when=When(last_user="cats", results=1)),
        Reply(calls=[Call("update_plan", {})], when=When(last_user="cats"), hold="go"),
        when("dogs", "on dogs"),
    ]
)
"""A run about cats that would take a message about dogs before it ends."""


async def test_a_message_of_another_person_waits_and_gets_its_own_reply(tmp_path: Path) -> None:
    async with open_group_chat(tmp_path, BUSY, topics=False) as chat:
        cats = await chat.say("tell me about cats")
        await chat.model.until_open(1)
        dogs = await chat.say("no, about dogs", by=chat.jonas)
        await chat.until_confirmed(dogs)
        chat.model.release("go")
        answers = await chat.until_answered(cats, dogs)
        assert answers == {cats: "on cats", dogs: "on dogs"}
        asked = [task.origin.principal.rpartition(":")[2] for task in await chat.tasks()]
        assert asked == [chat.mei.open_id, chat.jonas.open_id]


async def test_an_operator_who_steers_is_mentioned_in_the_reply(tmp_path: Path) -> None:
    script = [Reply(calls=[Call("update_plan", {})], hold="go"), Reply("counted")]
    async with open_group_chat(tmp_path, script, topics=False) as chat:
        boss = f"lark:{APP.app_id}:{chat.jonas.open_id}"
        await pair(chat, boss)
        count = await chat.say("count")
        await chat.model.until_open(1)
        for person, text in ((chat.mei, "to ten"), (chat.jonas, "in French")):
            await chat.until_confirmed(await chat.say(text, by=person))
        chat.model.release("go")
        answers = await chat.until_answered(count)
        assert answers == {count: f"<at id={chat.jonas.open_id}></at>\ncounted"}
        assert chat.said_to_model("in French")
        assert len(await chat.tasks()) == 1


async def test_late_messages_of_two_people_become_tasks_of_their_own(tmp_path: Path) -> None:
    rules = Rules(
        [
            when("count", "counted", hold="go"),
            when("to ten", "to ten then"),
            when("French", "un, deux"),
        ]
    )
    async with open_group_chat(tmp_path, rules, topics=False) as chat:
        boss = f"lark:{APP.app_id}:{chat.jonas.open_id}"
        await pair(chat, boss)
        count = await chat.say("count")
        await chat.model.until_open(1)
        said = []
        for person, text in ((chat.jonas, "in French"), (chat.mei, "to ten"), (chat.mei, "fast")):
            said.append(await chat.say(text, by=person))
            await chat.until_confirmed(said[-1])
        chat.model.release("go")
        answers = await chat.until_answered(count, *said[:2])
        await chat.lark.settled()
        assert answers == {count: "counted", said[0]: "un, deux", said[1]: "to ten then"}
        found = {task.instruction: task.origin.principal for task in await chat.tasks()}
        mei = found["count"]
        assert found == {"count": mei, "in French": boss, "to ten\n\nfast": mei}


@pytest.mark.parametrize("busy_mode", ["steer", "interrupt"])
async def test_a_message_only_affects_runs_of_its_own_thread(
    tmp_path: Path, busy_mode: str
) -> None:
    rules = Rules([when("cats", "on cats", hold="go"), when("dogs", "on dogs")])
    settings = with_values(OPERATORS, session_scope="chat", busy_mode=busy_mode)
    async with open_group_chat(tmp_path, rules, settings) as chat:
        cats = await chat.say("tell me about cats")
        await chat.model.until_open(1)
        dogs = await chat.say("about dogs too")
        await chat.until_confirmed(dogs)
        chat.model.release("go")
        answers = await chat.until_answered(cats, dogs)
        assert answers == {cats: "on cats", dogs: "on dogs"}


async def test_an_operator_who_interrupts_is_not_taken_for_the_asker(tmp_path: Path) -> None:
    rules = Rules([when("dogs", "on dogs"), when("cats", "on cats", hold="go")])
    settings = with_values(QUIET, busy_mode="interrupt")
    async with open_group_chat(tmp_path, rules, settings, topics=False) as chat:
        await pair(chat, f"lark:{APP.app_id}:{chat.jonas.open_id}")
        cats = await chat.say("tell me about cats")
        await chat.model.until_open(1)
        dogs = await chat.say("no, about dogs", by=chat.jonas)
        answers = await chat.until_answered(cats, dogs)
        assert answers == {cats: "Interrupted by a message of an operator.", dogs: "on dogs"}


async def test_the_reply_to_a_recalled_message_stays_in_its_topic(tmp_path: Path) -> None:
    async with open_group_chat(tmp_path, Rules([Reply("anyway", hold="go")])) as chat:
        topic = await chat.lark.sim.send_text(chat.amara, chat.group, "a topic")
        asked = await chat.say("never mind", topic)
        await chat.model.until_open(1)
        chat.lark.sim.lark.state.messages[asked].deleted = True
        chat.model.release("go")
        assert await chat.until_answered(topic) == {topic: "anyway"}
        assert [one.thread_id for one in chat.posts()] == [chat.thread(topic)]


async def test_the_owner_on_the_page_steers_a_run_of_a_thread(tmp_path: Path) -> None:
    script = [Reply(calls=[Call("update_plan", {})], hold="go"), Reply("counted")]
    async with open_group_chat(tmp_path, script) as chat:
        count = await chat.say("count")
        await chat.model.until_open(1)
        [task] = await chat.tasks()
        gateway = chat.lark.core.services.gateway
        steered = await gateway.steer_task(task.id, "in French", LOCAL_OWNER, channel="web")
        assert steered.taken_as == "steering"
        chat.model.release("go")
        assert await chat.until_answered(count) == {count: "counted"}
        assert chat.said_to_model("in French")


async def pair(chat: GroupChat, principal: str) -> None:
    """Make a person an operator."""
    access = chat.lark.core.services.gateway.access
    offer = await access.create_code("operate", LOCAL_OWNER, "cli")
    await access.redeem_code(offer.code, principal, "", "lark")
