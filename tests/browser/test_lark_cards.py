"""Cards of questions on the chat page of the simulator, with pictures: on a desktop, on a phone."""

import contextlib
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from playwright.sync_api import BrowserContext, Locator, Page, expect

from internal.settings.chat import ChatAccess
from internal.simulators.lark import user_actions
from internal.simulators.lark.model import ChatMessage, Person
from internal.simulators.lark.simulator import LarkSim
from tests.support.agent_app import plan
from tests.support.anthropic_server import Call, Reply, Rules
from tests.support.chat_settings import with_values
from tests.support.lark_gateway import (
    APP,
    QUIET,
    LarkGateway,
    open_lark_gateway,
    question_line,
    shown_text,
)
from tests.support.scripted_model import When

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(180)]

WIDTHS = {"desktop": 1100, "phone": 390}
PHONE_HEIGHT = 560
"""Height of a chat on a phone between its title and the field for the next message."""
NO_GATES = {"LARKSPUR_AGENT__GATES": "off"}
OLD = "\n".join(f"Step {n}: check the numbers of week {n}." for n in range(1, 7))
COMMAND = "npm test -- --coverage --reporter=dot"


def reply(text: str, *calls: Call) -> list[Reply]:
    """Return the calls of a run and its end."""
    first = Reply(calls=list(calls), when=When(last_user=text, results=0))
    return [first, Reply("All done.", when=When(last_user=text))]


SCRIPT = [
    *reply("run the tests", Call("shell", {"command": COMMAND})),
    *reply(
        "change the notes",
        Call("write_file", {"path": "notes.md", "content": OLD.replace("week 3", "month 3")}),
    ),
    *reply(
        "both of them",
        Call("shell", {"command": "npm ci"}),
        Call("write_file", {"path": "plan/today.md", "content": "one\ntwo\n"}),
    ),
    *reply("请运行测试", Call("shell", {"command": COMMAND})),
    *reply(
        "a long one",
        Call("shell", {"command": "\n".join(f"echo {n} >> log.txt" for n in range(40))}),
    ),
    *reply(
        "which color",
        Call("request_user", {"question": "Which color?", "options": ["red", "green", "blue"]}),
    ),
    *reply(
        "make a plan",
        plan(
            "Read the three reports",
            "Compare their numbers",
            "Write a summary",
            goal="Compare",
            complexity="complex",
        ),
    ),
]


class Chat:
    """A gateway at a simulated Lark in a thread of its own, and its chat page."""

    def __init__(self, portal: BlockingPortal, lark: LarkGateway, page: Page) -> None:
        self.portal, self.lark, self.page = portal, lark, page

    def ask(self, text: str, person: Person | None = None, count: int = 1) -> ChatMessage:
        """Send a message and return the newest question to a person when there are more."""
        self.portal.call(self.lark.settled)
        before = len(self.questions(person))
        self.portal.call(self.lark.say, text)
        wait = partial(
            self.lark.sim.until, lambda _: len(self.questions(person)) == before + count, 30
        )
        self.portal.call(wait)
        return self.questions(person)[-1]

    def questions(self, person: Person | None = None) -> list[ChatMessage]:
        sent = self.lark.from_bot(self.lark.sim.dm(person or self.lark.person))
        return [one for one in sent if shown_text(self.lark.sim, one) is None]

    def line(self, message: ChatMessage) -> str:
        return question_line(self.lark.sim.card(message.message_id) or {})

    def shoot(self, message: ChatMessage, path: Path, name: str) -> dict[str, int]:
        """Keep pictures of a card and return its height at each width."""
        heights = {}
        for size, width in WIDTHS.items():
            self.page.set_viewport_size({"width": width, "height": 844})
            card = self.card(message)
            card.scroll_into_view_if_needed()
            card.screenshot(path=path / f"lark-{name}-{size}.png")
            box = card.bounding_box()
            assert box is not None
            heights[size] = round(box["height"])
            assert self.page.evaluate("document.documentElement.scrollWidth") <= width
        return heights

    def card(self, message: ChatMessage) -> Locator:
        card = self.page.locator(f"[id='{message.message_id}'] .card")
        expect(card).to_be_visible()
        return card

    def press(self, message: ChatMessage, label: str) -> None:
        """Press a button and return when the answer is in the card.

        The press is on its way when the page has been clicked: a message sent then can come first.
        """
        button = self.card(message).get_by_role("button", name=label, exact=True)
        button.click()
        expect(button).to_have_count(0)


@pytest.fixture
def chats(
    tmp_path: Path, context: Callable[..., BrowserContext]
) -> Generator[Callable[[Any], Chat]]:
    """Open a gateway with the settings that a function of the simulator returns, and its page."""
    with contextlib.ExitStack() as stack:

        def opened(settings: Callable[[LarkSim], Any]) -> Chat:
            portal = stack.enter_context(start_blocking_portal())
            sim = stack.enter_context(
                portal.wrap_async_context_manager(LarkSim([APP], speed=100.0))
            )
            gateway = open_lark_gateway(
                tmp_path, Rules(SCRIPT), settings(sim), sim=sim, environ=NO_GATES
            )
            lark = stack.enter_context(portal.wrap_async_context_manager(gateway))
            page = context(timezone_id="America/New_York").new_page()
            page.goto(sim.page)
            expect(page.locator("#chats button").first).to_be_visible()
            return Chat(portal, lark, page)

        yield opened


def all_operate(_: LarkSim) -> Any:
    return with_values(QUIET, access=ChatAccess(operate=("*",)), plan_review="complex")


def test_cards_say_each_thing_once_and_fit_a_phone(
    chats: Callable[[Any], Chat], shots: Path
) -> None:
    chat = chats(all_operate)
    command = chat.ask("run the tests")
    assert chat.shoot(command, shots, "approval")["phone"] <= PHONE_HEIGHT
    card = chat.card(command)
    expect(card.get_by_text(COMMAND).locator("visible=true")).to_have_count(1)
    expect(card.get_by_role("button", name="Allow in this conversation")).to_be_hidden()
    card.get_by_text("More", exact=True).click()
    expect(card.get_by_role("button", name="Allow in this conversation")).to_be_visible()
    expect(card.locator("time")).to_have_count(
        2
    )  # the date and the time, in the zone of the reader
    chat.shoot(command, shots, "approval-more")
    chat.press(command, "Allow once")
    expect(card.get_by_text("Allowed once")).to_be_visible()
    assert chat.shoot(command, shots, "answered")["phone"] <= 100
    card.locator("summary").click()
    chat.shoot(command, shots, "answered-open")

    change = chat.ask("change the notes")
    assert chat.shoot(change, shots, "change")["phone"] <= PHONE_HEIGHT
    chat.press(change, "Deny")
    several = chat.ask("both of them")
    chat.shoot(several, shots, "several")
    chat.card(several).get_by_text("More", exact=True).click()
    chat.shoot(several, shots, "several-more")
    chat.press(several, "Allow all once")
    chinese = chat.ask("请运行测试")
    assert chat.shoot(chinese, shots, "chinese")["phone"] <= PHONE_HEIGHT
    chat.press(chinese, "拒绝")
    long = chat.ask("a long one")
    assert chat.shoot(long, shots, "long")["phone"] <= PHONE_HEIGHT
    chat.press(long, "Deny")
    choice = chat.ask("which color")
    assert chat.shoot(choice, shots, "choice")["phone"] <= PHONE_HEIGHT
    expect(chat.card(choice).get_by_text("green").locator("visible=true")).to_have_count(1)
    chat.press(choice, "2. green")
    expect(chat.card(choice).get_by_text("Which color? · “green”")).to_be_visible()
    chat.shoot(choice, shots, "choice-answered")
    review = chat.ask("make a plan")
    assert chat.shoot(review, shots, "plan")["phone"] <= PHONE_HEIGHT
    chat.card(review).get_by_text("More", exact=True).click()
    chat.shoot(review, shots, "plan-more")
    chat.press(review, "Approve")

    gone = chat.ask("run the tests")
    asked = next(
        one for one in chat.lark.sim.messages(chat.lark.dm)[::-1] if one.sender_type == "user"
    )
    state, person = chat.lark.sim.lark.state, chat.lark.person
    chat.portal.call(user_actions.recall, state, person.open_id, asked.message_id)
    expect(chat.card(gone).get_by_text("Withdrawn by")).to_be_visible()
    chat.shoot(gone, shots, "withdrawn")


def test_the_copy_for_an_operator_names_the_person_and_the_task(
    chats: Callable[[Any], Chat], shots: Path
) -> None:
    def one_operator(sim: LarkSim) -> Any:
        return with_values(QUIET, access=ChatAccess(operate=(sim.people[1].open_id,)))

    chat = chats(one_operator)
    boss = chat.lark.sim.people[1]
    chat.ask("run the tests")
    [own] = chat.questions()
    chat.shoot(own, shots, "asked-elsewhere")
    chat.page.get_by_label("You are").select_option(label=boss.name)
    [copy] = chat.questions(boss)
    chat.page.locator("#chats button", has_text="Larkspur").first.click()
    assert chat.shoot(copy, shots, "copy")["phone"] <= PHONE_HEIGHT
    expect(chat.card(copy)).to_contain_text(f"Task of {chat.lark.person.name}: run the tests")
    chat.press(copy, "Allow once")
    expect(chat.card(copy).get_by_text("Allowed once")).to_be_visible()
    assert "Allowed once" in chat.line(own)
