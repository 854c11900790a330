"""Questions as cards: pressed, filled in, refused, replaced; through the real SDK's connection."""

import asyncio
import base64
import json
import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from internal.agent.app.runs.questions import Actor
from internal.agent.domain.answers import AnswerInput
from internal.agent.domain.ids import QuestionId
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.questions import QuestionRecord
from internal.settings.chat import ChatAccess, ChatChannelSettings
from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.model import TENANT, Chat, ChatMessage, Json, Person
from internal.simulators.lark.simulator import LarkSim
from tests.support.agent_app import plan
from tests.support.anthropic_server import Call, Fault, Reply, seen_in
from tests.support.chat_settings import with_values
from tests.support.lark_chats import TOUCH
from tests.support.lark_gateway import (
    APP,
    QUIET,
    LarkGateway,
    open_lark,
    open_lark_gateway,
    question_line,
    question_outcome,
)
from tests.support.lark_markdown import as_shown, block_codes, codes, shown_tags
from tests.support.lark_process import replies, served
from tests.support.openai_server import ScriptedOpenAI

OPERATORS = with_values(QUIET, access=ChatAccess(operate=("*",)))
REVIEWED = with_values(OPERATORS, plan_review="always")
COLOURS = Call("request_user", {"question": "Which colour?", "options": ["red", "green", "blue"]})
MANY = Call("request_user", {**COLOURS.input, "multiple": True})
OPEN = Call("request_user", {"question": "What is the password's hint?"})
WRITE = Call("write_file", {"path": "notes.md", "content": "line\n" * 3})


def script(*calls: Call, planned: bool = True) -> list[Reply]:
    """Return a run that plans, makes these calls together and says that it is over."""
    first = [Reply(calls=[plan("do it")])] if planned else []
    return [*first, Reply(calls=list(calls)), Reply(text="over"), Reply(text="again over")]


SLOW = [Reply(calls=[plan("do it")]), Reply(calls=[TOUCH], hold="go"), Reply(text="over")]


class QuestionChat:
    """A question in a chat: its card, its state, the run behind it."""

    def __init__(self, lark: LarkGateway, chat: Chat, home: Path) -> None:
        self.lark, self.chat, self.home = lark, chat, home

    @property
    def cards(self) -> list[ChatMessage]:
        """The cards with a question, oldest first."""
        return [one for one in self.lark.from_bot(self.chat) if '"question_' in self.shown(one)]

    @property
    def card(self) -> ChatMessage:
        return self.cards[-1]

    def shown(self, message: ChatMessage) -> str:
        """Return the whole content of a message as JSON."""
        return json.dumps(self.lark.sim.card(message.message_id) or message.content)

    @property
    def outcome(self) -> str:
        """Return the outcome of the newest question, or its title while it is open."""
        return question_outcome(self.lark.sim.card(self.card.message_id) or {})

    @property
    def line(self) -> str:
        """The title of an open card, the line of a settled one."""
        return question_line(self.lark.sim.card(self.card.message_id) or {})

    async def asked(self, count: int = 1) -> QuestionRecord:
        """Return the newest question once its card exists and is recorded."""
        await self.lark.sim.until(lambda _: len(self.cards) == count)
        delivery = self.lark.core.services.gateway.delivery
        async with asyncio.timeout(20):
            while not (name := await delivery.find_question(self.card.message_id)):
                await self.lark.sim.lark.changed_within(0.02)
        return await self.question(name)

    async def question(self, question_id: str) -> QuestionRecord:
        queries = self.lark.core.services.gateway.queries
        return await queries.question(QuestionId(question_id), LOCAL_OWNER)

    async def press(self, label: str, person: Person | None = None, **entered: Any) -> Json:
        """Press the button with this label; return the response that the person sees."""
        who = person or self.lark.person
        return await self.lark.sim.click(who, self.card.message_id, label, **entered)

    async def forge(self, act: str, entered: Json | None = None) -> Json:
        """Press a button that the card does not have."""
        name = (await self.asked(len(self.cards))).question.id
        return await self.send({"question": name, "act": act}, entered)

    async def send(
        self,
        value: Any,
        entered: Json | None,
        *,
        message: str = "",
        chat: str = "",
        person: Person | None = None,
    ) -> Json:
        """Send a click as Lark would, with any value; return the response of the app."""
        action: Json = {"tag": "button", "value": value}
        if entered is not None:
            action["form_value"] = entered
        return await self.deliver(
            {
                "operator": {**(person or self.lark.person).ids(), "tenant_key": TENANT},
                "token": "c-1",
                "action": action,
                "context": {
                    "open_message_id": message or self.card.message_id,
                    "open_chat_id": chat or self.chat.chat_id,
                },
            }
        )

    async def deliver(self, event: Json) -> Json:
        sim = self.lark.sim
        ack = await sim.lark.delivery.call_back(sim.app, event)
        assert ack is not None
        return dict(json.loads(base64.b64decode(ack.data or "")))

    async def expire(self, question_id: str) -> None:
        """Make the question's time over."""
        path = self.home / "larkspur.db"
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("update questions set expires = asked where id = ?", (question_id,))

    def progress(self) -> str:
        """The card that shows the run."""
        found = [one for one in self.lark.from_bot() if one not in self.cards]
        shown = [self.shown(one) for one in found]
        return next((text for text in shown if "header" in text), "")

    def reactions(self, message_id: str) -> list[str]:
        state = self.lark.sim.lark.state
        return [each.emoji for each in state.messages[message_id].reactions]

    async def until_shown(self, words: str) -> str:
        """Return the card as soon as it shows these words."""
        await self.lark.sim.until(lambda _: words in self.shown(self.card))
        return self.shown(self.card)

    def heard(self) -> str:
        """Return the last tool result that the model received."""
        return seen_in(self.lark.core.model.requests[-1]).last_result


@asynccontextmanager
async def open_chat(
    home: Path,
    replies: list[Reply] | Callable[[dict[str, Any]], Reply],
    settings: ChatChannelSettings = OPERATORS,
    **more: Any,
) -> AsyncGenerator[QuestionChat]:
    async with open_lark_gateway(home, replies, settings, **more) as lark:
        yield QuestionChat(lark, lark.dm, home)


def toast(outcome: Json) -> tuple[str, str]:
    assert "error" not in outcome
    return outcome["toast"]["type"], outcome["toast"]["content"]


async def test_a_call_is_shown_and_allowed_once(tmp_path: Path) -> None:
    async with open_chat(tmp_path, script(TOUCH)) as one:
        asked = await one.lark.say("touch it")
        question = await one.asked()
        shown = one.shown(one.card)
        assert "touch ran" in shown
        assert "Runs a program" in shown
        assert "Operators can answer until" in shown
        assert one.card.parent_id == asked
        assert toast(await one.press("Allow once")) == ("success", "Allowed once")
        name = f"<at id={one.lark.person.open_id}></at>"
        assert one.line == f"✓ **Allowed once** · Run touch ran · by {name}"
        assert '"button"' not in one.shown(one.card)
        assert f"By {name} in Lark" in one.shown(one.card)
        assert (await one.lark.until_replies(1)) == ["over"]
        answer = (await one.question(question.question.id)).answer
        assert answer is not None
        assert (answer.by, answer.via) == (f"lark:{APP.app_id}:{one.lark.person.open_id}", "lark")
        await one.lark.settled()
        assert len(one.cards) == 1
        assert one.outcome == "Allowed once"


async def test_the_reason_is_given_in_the_language_of_the_message(tmp_path: Path) -> None:
    two = Call("shell", {"command": "if true; then touch ran; fi"})
    async with open_chat(tmp_path, script(two)) as one:
        await one.lark.say("请创建文件")
        await one.asked()
        assert json.dumps("没有规则允许 true; touch ran")[1:-1] in one.shown(one.card)


async def test_a_click_is_answered_while_the_name_of_the_person_is_not_known(
    tmp_path: Path,
) -> None:
    async with open_chat(tmp_path, script(TOUCH)) as one:
        sim = one.lark.sim
        sim.faults.answers.append(AnswerFault("slow", "GET /open-apis/contact", seconds=60))
        await one.lark.say("touch it")
        question = await one.asked()
        assert toast(await one.press("Allow once")) == ("success", "Allowed once")
        assert not any("/contact/" in entry.what for entry in sim.log)  # no response yet
        answer = (await one.question(question.question.id)).answer
        assert answer is not None
        assert answer.name == ""


async def test_the_name_of_the_person_who_clicked_is_added_to_the_answer(tmp_path: Path) -> None:
    async with open_chat(tmp_path, script(TOUCH)) as one:
        await one.lark.say("touch it")
        question = await one.asked()
        await one.press("Allow once")

        async def name() -> str:
            answer = (await one.question(question.question.id)).answer
            return "" if answer is None else answer.name

        async with asyncio.timeout(20):
            while not await name():
                await one.lark.sim.lark.changed_within(0.02)
        assert await name() == one.lark.person.name


async def test_an_approval_can_apply_to_the_session_or_permanently(tmp_path: Path) -> None:
    again = [Reply(calls=[plan("do it")]), Reply(calls=[TOUCH]), Reply(text="over")]
    async with open_chat(tmp_path, [*script(TOUCH)[:3], *again, *again]) as one:
        gateway = one.lark.core.services.gateway
        await one.lark.say("touch it")
        await one.asked()
        assert "Always allow this" in one.shown(one.card)
        assert toast(await one.press("Allow in this conversation"))[1] == (
            "Allowed in this conversation"
        )
        assert await one.lark.until_replies(1) == ["over"]
        (rule,) = await gateway.queries.rules(LOCAL_OWNER)
        assert rule.rule == "shell(touch ran)"
        assert rule.scope.startswith("session")
        await one.lark.say("touch it again")
        assert await one.lark.until_replies(2) == ["over", "over"]
        assert len(one.cards) == 1


async def test_no_rule_is_offered_for_a_call_that_may_not_have_one(tmp_path: Path) -> None:
    wrapped = Call("shell", {"command": "sh -c 'touch ran'"})
    async with open_chat(tmp_path, script(wrapped)) as one:
        await one.lark.say("touch it")
        question = await one.asked()
        assert question.question.calls[0].rules == ()
        assert "Always allow" not in one.shown(one.card)
        assert toast(await one.forge("rule"))[0] == "warning"
        assert (await one.question(question.question.id)).status == "open"


async def test_a_rejection_and_its_reason_reach_the_model(tmp_path: Path) -> None:
    async with open_chat(tmp_path, script(TOUCH)) as one:
        await one.lark.say("touch it")
        await one.asked()
        outcome = await one.press("Deny with this reason", form_value={"words": "use *make*"})
        assert toast(outcome) == ("success", "Not allowed")
        assert await one.lark.until_replies(1) == ["over"]
        assert "said no: use *make*" in one.heard()
        (line,) = json.loads(one.shown(one.card))["body"]["elements"]
        assert "\u201cuse *make*\u201d" in [
            each["text"]["content"] for each in line["elements"] if each["tag"] == "div"
        ]


async def test_several_calls_are_answered_one_by_one(tmp_path: Path) -> None:
    async with open_chat(tmp_path, script(TOUCH, WRITE)) as one:
        await one.lark.say("both")
        await one.asked()
        shown = one.shown(one.card)
        assert "+line" in shown
        assert "Changes files" in shown
        outcome = await one.press(
            "Allow selected once", form_value={"call_1": False, "call_2": True}
        )
        assert toast(outcome) == ("success", "Allowed 1 of 2")
        assert "\\u2717 1. Run a command" in one.shown(one.card)
        assert "\\u2713 2. Write a file" in one.shown(one.card)
        assert await one.lark.until_replies(1) == ["over"]
        (folder,) = (tmp_path / "workspaces").iterdir()
        assert [each.name for each in folder.iterdir() if each.is_file()] == ["notes.md"]


async def test_an_empty_selection_is_no_answer(tmp_path: Path) -> None:
    async with open_chat(tmp_path, script(TOUCH, WRITE)) as one:
        await one.lark.say("both")
        question = await one.asked()
        for fields in ({"call_1": False, "call_2": False}, {}):
            outcome = await one.press("Allow selected once", form_value=fields)
            assert toast(outcome)[1].startswith("Nothing is selected")
        assert (await one.question(question.question.id)).status == "open"


async def test_a_plan_is_approved(tmp_path: Path) -> None:
    replies = [Reply(calls=[plan("look", "tell", goal="to know")]), Reply(text="over")]
    async with open_chat(tmp_path, replies, REVIEWED) as one:
        await one.lark.say("look around")
        await one.asked()
        assert "1. look\\n2. tell" in one.shown(one.card)
        assert toast(await one.press("Approve")) == ("success", "Approved")
        assert await one.lark.until_replies(1) == ["over"]


async def test_a_plan_is_edited_in_the_card(tmp_path: Path) -> None:
    replies = [Reply(calls=[plan("look", "tell")]), Reply(text="over")]
    async with open_chat(tmp_path, replies, REVIEWED) as one:
        await one.lark.say("look around")
        await one.asked()
        edited = {"steps": "1. look twice\n\n2. tell all"}
        assert toast(await one.press("Approve edited steps", form_value=edited)) == (
            "success",
            "Approved with edits",
        )
        assert "look twice" in one.shown(one.card)
        assert await one.lark.until_replies(1) == ["over"]
        assert "look twice" in one.heard()


async def test_a_revised_plan_is_reviewed_again(tmp_path: Path) -> None:
    replies_ = [Reply(calls=[plan("look", "tell")]), Reply(text="over")]
    async with open_chat(tmp_path, replies_, REVIEWED) as one:
        await one.lark.say("look around")
        await one.asked()
        for steps, said in (
            ("look\ntell", "The steps haven't changed. Edit them, or choose Approve."),
            ("look\nthink\ntell", "Edited; waiting for another review"),
        ):
            outcome = await one.press("Save edits and review again", form_value={"steps": steps})
            assert toast(outcome)[1] == said
        await one.asked(2)
        assert "3. tell" in one.shown(one.card)
        assert toast(await one.press("Approve"))[1] == "Approved"
        assert await one.lark.until_replies(1) == ["over"]


async def test_unchanged_steps_are_an_approval(tmp_path: Path) -> None:
    replies = [Reply(calls=[plan("look", "tell")]), Reply(text="over")]
    async with open_chat(tmp_path, replies, REVIEWED) as one:
        await one.lark.say("look around")
        await one.asked()
        assert toast(await one.press("Approve edited steps", form_value={"steps": " "})) == (
            "warning",
            "A plan needs at least one step.",
        )
        same = {"steps": "look\ntell"}
        assert toast(await one.press("Approve edited steps", form_value=same))[1] == "Approved"


async def test_a_plan_changed_by_feedback_is_reviewed_again(tmp_path: Path) -> None:
    replies = [
        Reply(calls=[plan("look")]),
        Reply(calls=[plan("look closely")]),
        Reply(text="over"),
    ]
    async with open_chat(tmp_path, replies, REVIEWED) as one:
        await one.lark.say("look around")
        await one.asked()
        outcome = await one.press("Request changes", form_value={"words": "closer please"})
        assert toast(outcome) == ("success", "Changes requested")
        await one.asked(2)
        assert "closer please" in one.heard()
        assert "look closely" in one.shown(one.card)
        assert toast(await one.press("Reject")) == ("success", "Rejected")
        assert "request was rejected" in (await one.lark.until_replies(1))[0]


async def test_a_plan_that_is_too_long_for_a_field_is_changed_elsewhere(tmp_path: Path) -> None:
    steps = [f"{n}: {'word ' * 40}" for n in range(50)]
    async with open_chat(
        tmp_path, [Reply(calls=[plan(*steps)]), Reply(text="over")], REVIEWED
    ) as one:
        await one.lark.say("a lot")
        await one.asked()
        assert "too long to edit here" in one.shown(one.card)
        assert "Approve edited steps" not in one.shown(one.card)
        assert toast(await one.press("Approve"))[1] == "Approved"


@pytest.mark.parametrize(
    ("call", "press", "entered", "heard"),
    [
        (COLOURS, "2. green", None, "green"),
        (COLOURS, "Send", {"words": "violet"}, "violet"),
        (MANY, "Send", {"words": "", "chosen": ["1", "3"]}, "red; blue"),
        (MANY, "Send", {"words": "and white", "chosen": ["3"]}, "blue; and white"),
        (OPEN, "Send", {"words": "the usual"}, "the usual"),
        (OPEN, "Yes, continue", None, ""),
        (COLOURS, "Skip this question", None, ""),
    ],
)
async def test_a_question_is_answered_with_text(
    tmp_path: Path, call: Call, press: str, entered: Json | None, heard: str
) -> None:
    async with open_chat(
        tmp_path, script(call, planned=False), QUIET
    ) as one:  # who asked may answer
        await one.lark.say("paint it")
        await one.asked()
        assert "The person who started the task" in one.shown(one.card)
        assert toast(await one.press(press, form_value=entered))[0] == "success"
        assert await one.lark.until_replies(1) == ["over"]
        assert heard in one.heard()


async def test_an_empty_answer_is_refused(tmp_path: Path) -> None:
    async with open_chat(tmp_path, script(MANY, planned=False)) as one:
        await one.lark.say("paint it")
        question = await one.asked()
        for fields in ({"words": " ", "chosen": []}, {"words": ""}, {}):
            assert toast(await one.press("Send", form_value=fields)) == (
                "warning",
                "Please enter or choose an answer first.",
            )
        assert (await one.question(question.question.id)).status == "open"


MALFORMED = [
    ("a string", None),
    ({"act": "approve"}, None),
    ({"question": "{id}", "act": "destroy"}, None),
    ({"question": "{id}", "act": "approve", "grant": "rule"}, None),
    ({"question": "{id}", "act": "approve", "number": "1"}, None),
    ({"question": "{id}", "act": "approve"}, {"words": "x"}),
    ({"question": "{id}", "act": "because"}, None),
    ({"question": "{id}", "act": "because"}, {"words": 7}),
    ({"question": "{id}", "act": "because"}, {"words": "x", "call_1": True}),
    ({"question": "{id}", "act": "each"}, {"call_1": "true"}),
    ({"question": "{id}", "act": "each"}, {"call_9": True}),
    ({"question": "{id}", "act": "say"}, {"words": "x" * 20_001}),
    ({"question": "{id}", "act": "say"}, {"words": "x", "chosen": ["\u00b2"]}),
    ({"question": "{id}", "act": "edit"}, {"steps": "x"}),
]


@pytest.mark.parametrize(("value", "entered"), MALFORMED)
@pytest.mark.first_rows(3)
async def test_a_malformed_click_does_nothing(
    tmp_path: Path, value: Any, entered: Json | None
) -> None:
    async with open_chat(tmp_path, script(TOUCH)) as one:
        await one.lark.say("touch it")
        question = await one.asked()
        if isinstance(value, dict) and "question" in value:
            value = {**value, "question": question.question.id}
        outcome = await one.send(value, entered)
        assert toast(outcome) == (
            "warning",
            "The card sent invalid data. Nothing was done.",
        )
        assert (await one.question(question.question.id)).status == "open"


@pytest.mark.parametrize("act", ["choose", "edit"])
async def test_an_answer_of_another_kind_does_nothing(tmp_path: Path, act: str) -> None:
    async with open_chat(tmp_path, script(TOUCH)) as one:
        await one.lark.say("touch it")
        question = await one.asked()
        entered = {"steps": "x"} if act == "edit" else None
        assert toast(await one.forge(act, entered))[0] == "warning"
        assert (await one.question(question.question.id)).status == "open"


async def test_a_click_on_another_message_or_in_another_chat_does_nothing(tmp_path: Path) -> None:
    async with open_chat(tmp_path, script(TOUCH)) as one:
        await one.lark.say("touch it")
        question = await one.asked()
        name = question.question.id
        value = {"question": name, "act": "approve"}
        for outcome in (
            await one.send(value, None, message="om_other"),
            await one.send(value, None, chat=one.lark.group.chat_id),
            await one.send({**value, "question": "question-nobody-1"}, None),
        ):
            assert toast(outcome)[1].startswith("This card doesn't belong to a question")
        assert (await one.question(name)).status == "open"


@pytest.mark.parametrize("event", [{}, {"operator": 7}, {"operator": {}, "action": {}}])
async def test_a_malformed_action_event_gets_a_toast(tmp_path: Path, event: Json) -> None:
    async with open_chat(tmp_path, []) as one:
        reaction = await one.deliver(event)
        assert reaction["toast"]["content"].startswith("The card sent invalid data")


async def test_a_person_without_the_right_changes_nothing(tmp_path: Path) -> None:
    settings = with_values(QUIET, access=ChatAccess(operate=("ou_nobody",)))
    async with open_chat(tmp_path, script(TOUCH), settings) as one:
        await one.lark.say("touch it")
        question = await one.asked()
        assert '"button"' not in one.shown(one.card)
        refusal = ("warning", "Only operators can answer this question.")
        assert toast(await one.forge("approve")) == refusal
        assert (await one.question(question.question.id)).status == "open"


async def test_in_a_group_the_right_is_checked_at_the_click(
    tmp_path: Path,
) -> None:
    settings = with_values(QUIET, access=ChatAccess(operate=("ou_somebody",)))
    async with open_lark_gateway(tmp_path, script(TOUCH), settings) as lark:
        one = QuestionChat(lark, lark.group, tmp_path)
        asker, other = (lark.sim.person(name) for name in sorted(lark.group.members)[:2])
        await lark.sim.send_text(asker, lark.group, "touch it", mention_bot=True)
        question = await one.asked()
        for person in (asker, other):
            assert toast(await one.press("Allow once", person))[0] == "warning"
        gateway = lark.core.services.gateway
        code = await gateway.access.create_code("operate", LOCAL_OWNER, "cli")
        name = f"lark:{APP.app_id}:{other.open_id}"
        await gateway.access.redeem_code(code.code, name, other.name, "lark")
        assert toast(await one.press("Allow once", asker))[0] == "warning"
        assert toast(await one.press("Allow once", other))[0] == "success"
        answer = (await one.question(question.question.id)).answer
        assert answer is not None
        assert answer.name == other.name
        assert await lark.until_replies(1, lark.group) == ["over"]


async def test_an_answer_from_elsewhere_replaces_the_card_in_place(tmp_path: Path) -> None:
    async with open_chat(tmp_path, script(TOUCH)) as one:
        await one.lark.say("touch it")
        question = await one.asked()
        before = one.card.message_id
        gateway = one.lark.core.services.gateway
        given = AnswerInput("reject", "not today")
        await gateway.answer(question.question.id, given, Actor(LOCAL_OWNER, "web"))
        shown = await one.until_shown("not today")
        assert "By the owner on the web page" in shown
        assert '"button"' not in shown
        assert one.outcome == "Not allowed"
        assert one.card.message_id == before
        assert len(one.cards) == 1
        assert await one.lark.until_replies(1) == ["over"]


async def test_only_one_of_two_simultaneous_clicks_counts(tmp_path: Path) -> None:
    async with open_chat(tmp_path, script(TOUCH)) as one:
        await one.lark.say("touch it")
        question = await one.asked()
        name = question.question.id
        values = [{"question": name, "act": act} for act in ("approve", "reject")]
        people = one.lark.sim.people
        async with asyncio.TaskGroup() as both:
            clicks = [
                both.create_task(one.send(value, None, person=person))
                for value, person in zip(values, people, strict=False)
            ]
        toasts = sorted(toast(click.result()) for click in clicks)
        assert [kind for kind, _ in toasts] == ["info", "success"]
        assert toasts[0][1].startswith("Already answered by")
        assert await one.lark.until_replies(1) == ["over"]


async def test_a_redelivered_click_gets_the_same_response(tmp_path: Path) -> None:
    async with open_chat(tmp_path, script(TOUCH)) as one:
        await one.lark.say("touch it")
        await one.asked()
        await one.press("Allow once")
        push = next(p for p in one.lark.sim.pushes if p.event_type == "card.action.trigger")
        acks = [
            await one.lark.sim.lark.delivery.connections[0].push(push.encode(), one.lark.sim.faults)
            for _ in range(2)
        ]
        assert acks[0] is not None
        assert acks[0] == acks[1]
        assert await one.lark.until_replies(1) == ["over"]
        late = await one.send(push.event["action"]["value"], None)
        assert toast(late)[1] == "Already answered by you in Lark: Allowed once."


async def test_a_click_after_expiry_is_inert(tmp_path: Path) -> None:
    async with open_chat(tmp_path, script(TOUCH)) as one:
        await one.lark.say("touch it")
        question = await one.asked()
        name = question.question.id
        await one.expire(name)
        outcome = await one.send({"question": name, "act": "approve"}, None)
        assert toast(outcome) == ("info", "This question has expired. Nothing was run.")


async def test_an_expired_question_is_a_rejection_on_its_card(tmp_path: Path) -> None:
    async with open_chat(tmp_path, script(TOUCH)) as one:
        await one.lark.say("touch it")
        question = await one.asked()
        await one.expire(question.question.id)
        assert await one.lark.core.services.dispatcher._recovery.expire_questions() == 1
        await one.lark.sim.until(lambda _: one.outcome.startswith("Expired"))
        assert '"button"' not in one.shown(one.card)
        assert await one.lark.until_replies(1) == ["over"]
        assert "nobody answered in time" in one.heard()


async def test_a_stop_closes_the_card(tmp_path: Path) -> None:
    async with open_chat(tmp_path, script(TOUCH)) as one:
        await one.lark.say("touch it")
        question = await one.asked()
        await one.lark.say("/stop")
        await one.lark.sim.until(lambda _: one.outcome == "Not allowed")
        outcome = await one.send({"question": question.question.id, "act": "approve"}, None)
        assert toast(outcome) == ("info", "Already answered by you in Lark: Not allowed.")


@pytest.mark.parametrize("code", [230099, 230025, 230001])
@pytest.mark.first_rows(1)
async def test_a_rejected_card_is_sent_as_text(tmp_path: Path, code: int) -> None:
    async with open_chat(tmp_path, script(COLOURS, planned=False)) as one:
        one.lark.sim.faults.answers.append(AnswerFault("code", "/reply", times=2, code=code))
        await one.lark.say("paint it")
        await one.lark.sim.until(lambda _: one.lark.from_bot())
        (said,) = one.lark.replies()
        assert "1. red\n2. green\n3. blue" in said
        assert "reply to this message with a number" in said
        gateway = one.lark.core.services.gateway
        (question,) = await gateway.queries.open_questions_everywhere()
        question_id = question.question.id
        assert f"end your message with {question_id[-6:]}." in said
        given = AnswerInput("text", choices=(2,))
        await gateway.answer(QuestionId(question_id), given, Actor(LOCAL_OWNER, "cli"))
        replies = await one.lark.until_replies(3)
        assert "Answered: Which colour?" in replies[1]
        assert "By the owner in the terminal" in replies[1]
        assert replies[2] == "over"


async def test_a_card_that_lark_refuses_is_sent_without_panels(tmp_path: Path) -> None:
    async with open_chat(tmp_path, script(TOUCH)) as one:
        one.lark.sim.faults.answers.append(AnswerFault("code", "/reply", times=1, code=230099))
        await one.lark.say("touch it")
        await one.asked()
        tags = {each["tag"] for each in json.loads(one.shown(one.card))["body"]["elements"]}
        assert tags == {"markdown", "div", "column_set"}
        assert "Operators can answer within 24 h" in one.shown(one.card)
        assert toast(await one.press("Allow once")) == ("success", "Allowed once")
        assert one.outcome == "Allowed once"


async def test_a_card_that_is_too_old_is_followed_by_a_notice(tmp_path: Path) -> None:
    async with open_chat(tmp_path, script(TOUCH)) as one:
        await one.lark.say("touch it")
        question = await one.asked()
        one.lark.sim.faults.answers.append(AnswerFault("code", "PATCH", times=1, code=230031))
        gateway = one.lark.core.services.gateway
        answerer = Actor(LOCAL_OWNER, "web")
        await gateway.answer(question.question.id, AnswerInput("approve"), answerer)
        said = await one.lark.until_replies(2)
        assert said[0].startswith("\u2753")
        assert "Allowed once" in said[0]


async def test_content_that_does_not_fit_is_sent_as_a_file(tmp_path: Path) -> None:
    lines = "\n".join(f"echo {n}" for n in range(200))
    async with open_chat(tmp_path, script(Call("shell", {"command": lines}))) as one:
        await one.lark.say("a lot")
        await one.asked()
        shown = one.shown(one.card)
        assert "more lines" in shown
        assert "full text is in the attached file" in shown
        await one.lark.sim.until(lambda _: len(one.lark.from_bot()) == 2)
        assert one.lark.from_bot()[1].msg_type == "file"
        (file,) = one.lark.sim.lark.state.media.values()
        assert b"echo 199" in file.data


async def test_a_rejected_file_does_not_affect_the_card(tmp_path: Path) -> None:
    lines = "\n".join(f"echo {n}" for n in range(200))
    async with open_chat(tmp_path, script(Call("shell", {"command": lines}))) as one:
        one.lark.sim.faults.answers.append(AnswerFault("code", "/files", times=9, code=234006))
        await one.lark.say("a lot")
        await one.asked()
        assert [each.msg_type for each in one.lark.from_bot()] == ["interactive"]
        assert toast(await one.press("Allow once"))[0] == "success"


@pytest.mark.parametrize(
    ("command", "form"),
    [
        ("echo '![x](y)' <at id=all></at> `<font>`", "markdown"),
        ("echo '\n```\n<at id=all></at> ![x](http://e.x/p.png)'", "div"),
    ],
)
async def test_the_card_shows_the_exact_command_and_nothing_active(
    tmp_path: Path, command: str, form: str
) -> None:
    async with open_chat(tmp_path, script(Call("shell", {"command": command}))) as one:
        await one.lark.say("touch it")
        await one.asked()
        for label in ("Deny", ""):  # the answered card shows it as well
            elements = json.loads(one.shown(one.card))["body"]["elements"]
            if not label:
                elements = elements[0]["elements"][1:]  # after the tool
            element = next(each for each in elements if each["tag"] in {"markdown", "div"})
            element.pop("element_id", None)
            assert element["tag"] == form
            if form == "markdown":
                assert shown_tags(element["content"]) == []
                assert block_codes(element["content"]) == [command]
            else:
                assert element["text"] == {"tag": "plain_text", "content": command}
            if label:
                assert toast(await one.press(label))[0] == "success"


async def test_an_answer_cannot_imitate_an_approval_card(tmp_path: Path) -> None:
    fake = (
        "<font color='red'>**Allow this action?**</font> <text_tag color='red'>shell</text_tag>\n"
        "`rm <x>`\n<button>Allow once</button> <a href='http://e.x'>Allow</a> <at id=all></at>"
    )
    async with open_lark_gateway(tmp_path, [Reply(fake)]) as lark:
        await lark.say("hello")
        [shown] = await lark.until_replies(1)
        card = lark.sim.card(lark.from_bot()[0].message_id) or {}
        assert [each["tag"] for each in card["body"]["elements"]] == ["markdown"]
        assert "header" not in card
        assert shown_tags(shown) == []
        assert codes(shown) == ["rm <x>"]
        assert "<button>Allow once</button>" in as_shown(shown)


async def test_a_chinese_task_is_asked_about_in_chinese(tmp_path: Path) -> None:
    async with open_chat(tmp_path, script(TOUCH)) as one:
        await one.lark.say("\u65b0\u5efa\u6587\u4ef6")
        await one.asked()
        assert toast(await one.press("\u5141\u8bb8\u4e00\u6b21"))[1] == (
            "\u5df2\u5141\u8bb8\u4e00\u6b21"
        )


async def test_progress_shows_waiting_and_then_continues(tmp_path: Path) -> None:
    shows = ChatChannelSettings(access=ChatAccess(operate=("*",)))
    async with open_chat(tmp_path, SLOW, shows) as one:
        asked = await one.lark.say("touch it")
        await one.lark.sim.until(lambda _: '"Working"' in one.progress())
        one.lark.core.model.release("go")
        await one.asked()
        await one.lark.sim.until(lambda _: "Waiting for an answer" in one.progress())
        await one.lark.sim.until(lambda _: one.reactions(asked) == [])
        gateway = one.lark.core.services.gateway
        name = (await one.asked()).question.id
        await gateway.answer(name, AnswerInput("approve"), Actor(LOCAL_OWNER, "web"))
        assert await one.lark.until_replies(1) == ["over"]
        await one.lark.sim.until(lambda _: len(one.lark.from_bot()) == 2)  # question, reply


async def test_an_answer_given_while_disconnected_is_shown_after_a_restart(
    tmp_path: Path,
) -> None:
    shows = ChatChannelSettings(access=ChatAccess(operate=("*",)))
    async with open_chat(tmp_path, SLOW, shows) as one:
        asked = await one.lark.say("touch it")
        await one.lark.sim.until(lambda _: '"Working"' in one.progress())
        one.lark.core.model.release("go")
        question = await one.asked()
        await one.lark.sim.until(lambda _: "Waiting for an answer" in one.progress())
        await one.lark.sim.until(lambda _: one.reactions(asked) == [])
        gateway = one.lark.core.services.gateway
        while not await gateway.run_displays.list_abandoned(f"lark:{APP.app_id}"):
            await one.lark.sim.lark.changed_within(0.05)
        one.lark.channel.stop()
        await one.lark.sim.until(lambda _: not one.lark.sim.lark.delivery.connections)
        answerer = Actor(LOCAL_OWNER, "cli")
        await gateway.answer(question.question.id, AnswerInput("approve"), answerer)
        async with open_lark(one.lark.core, one.lark.sim, shows):
            await one.lark.sim.until(lambda _: one.outcome == "Allowed once")
            assert await one.lark.until_replies(1) == ["over"]
            await one.lark.sim.until(lambda _: one.reactions(asked) == [])
            await one.lark.sim.until(lambda _: len(one.lark.from_bot()) == 2)  # question, reply


async def test_a_question_whose_response_was_lost_is_sent_once(tmp_path: Path) -> None:
    async with open_chat(tmp_path, script(TOUCH)) as one:
        one.lark.sim.faults.answers.append(AnswerFault("lost", "/reply", times=3))
        await one.lark.say("touch it")
        await one.asked()
        assert len(one.lark.from_bot()) == 1
        assert toast(await one.press("Allow once"))[0] == "success"
        assert await one.lark.until_replies(1) == ["over"]


@pytest.mark.slow
async def test_a_stuck_store_approves_nothing(tmp_path: Path) -> None:
    async with open_chat(tmp_path, script(TOUCH)) as one:
        await one.lark.say("touch it")
        question = await one.asked()
        name = question.question.id
        with closing(sqlite3.connect(tmp_path / "larkspur.db")) as other:
            other.execute("begin immediate")
            for _ in range(2):
                outcome = await one.send({"question": name, "act": "approve"}, None)
                assert toast(outcome)[0] == "error"
                assert "may not have been saved" in toast(outcome)[1]
            assert (await one.question(name)).status == "open"
            other.rollback()
        assert await one.lark.until_replies(1) == ["over"]  # it was stored after all
        assert one.outcome == "Allowed once"


@pytest.mark.slow
async def test_a_run_killed_between_question_and_click_continues(tmp_path: Path) -> None:
    lark = "LARKSPUR_CHANNELS__LARK__"
    operate = {f"{lark}ACCESS__OPERATE": '["*"]', f"{lark}PROGRESS": "off"}
    async with LarkSim([APP], speed=100.0) as sim, ScriptedOpenAI(script(TOUCH)) as model:
        async with served(tmp_path, sim, model, **operate) as gateway:
            await sim.until(lambda _: sim.lark.delivery.connections, 60)
            chat = sim.dm(sim.people[0])
            await sim.send_text(sim.people[0], chat, "touch it")
            await sim.until(lambda _: len(sim.messages(chat)) == 2, 60)
            gateway.kill()
            await gateway.over()
        card = sim.messages(chat)[1].message_id
        lost = await sim.click(sim.people[0], card, "Allow once")
        assert lost["toast"]["type"] == "error"  # nobody is there
        async with served(tmp_path, sim, model, **operate) as gateway:
            await sim.until(lambda _: sim.lark.delivery.connections, 60)
            seen: list[Json] = []
            while not seen or seen[-1]["toast"]["type"] != "success":
                seen.append(await sim.click(sim.people[0], card, "Allow once"))
                assert seen[-1]["toast"]["type"] in {"success", "warning"}, seen  # still on its way
            await sim.until(lambda _: "over" in replies(sim), 60)
            tasks = (await gateway.client.request("GET", "/api/tasks")).json()["tasks"]
            assert [task["status"] for task in tasks] == ["completed"]
        assert len(sim.messages(chat)) == 3
        assert question_outcome(sim.card(card) or {}) == "Allowed once"


def overloaded(times: int = 1) -> list[Reply]:
    """Return replies of a model that is overloaded that often before it answers."""
    return [Reply(text="over", fault=Fault("status", message="Overloaded", times=times))]


async def test_an_interrupted_run_is_retried_by_a_button_and_by_advice(tmp_path: Path) -> None:
    async with open_chat(tmp_path, overloaded(2)) as one:
        await one.lark.say("work")
        question = await one.asked()
        assert question.question.kind == "recovery"
        assert one.outcome == "The task cannot continue on its own"
        assert toast(await one.press("Retry")) == ("success", "Retried")
        await one.asked(2)
        advice = {"words": "use less"}
        assert toast(await one.press("Retry with advice", form_value=advice)) == (
            "success", "Retried with advice",
        )  # fmt: skip
        assert await one.lark.until_replies(1) == ["over"]
        assert "use less" in json.dumps(one.lark.core.model.requests[-1]["messages"])


@pytest.mark.parametrize(("text", "outcome"), [("重试", "over"), ("use less", "over")])
async def test_an_interrupted_run_is_retried_by_a_message(
    tmp_path: Path, text: str, outcome: str
) -> None:
    async with open_chat(tmp_path, overloaded()) as one:
        await one.lark.say("work")
        await one.asked()
        await one.lark.say(text)
        assert await one.lark.until_replies(1) == [outcome]
        said = json.dumps(one.lark.core.model.requests[-1]["messages"], ensure_ascii=False)
        assert (text in said) == (text != "重试")


@pytest.mark.parametrize("way", ["button", "message"])
async def test_an_interrupted_run_is_given_up(tmp_path: Path, way: str) -> None:
    async with open_chat(tmp_path, overloaded()) as one:
        await one.lark.say("work")
        question = await one.asked()
        if way == "button":
            assert toast(await one.press("Give up")) == ("success", "Given up")
        else:
            await one.lark.say("give up")
        await one.lark.until_replies(1)
        queries = one.lark.core.services.gateway.queries
        run = await queries.latest_run(question.task_id, LOCAL_OWNER)
        assert (run.status, run.stop_reason) == ("failed", "interrupted")
        assert "Given up by" in run.error
