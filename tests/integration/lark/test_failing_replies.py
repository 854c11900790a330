"""A reply that Lark cannot send is sent in another form and does not silence its chat."""

from datetime import timedelta
from pathlib import Path

import pytest

from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.model import GROUP_MESSAGES, App, Chat
from internal.simulators.lark.simulator import LarkSim
from tests.support.lark_gateway import APP
from tests.support.lark_outbox import Outbox, open_outbox

INTERNAL_ERROR = 2200


def failing(content: str, kind: str = "code", match: str = "/reply") -> AnswerFault:
    """Return a fault of every call whose body contains a text."""
    return AnswerFault(kind, match, times=10_000, code=INTERNAL_ERROR, status=500, content=content)


def kinds(outbox: Outbox, chat: Chat) -> list[str]:
    return [one.msg_type for one in outbox.sim.messages(chat) if one.sender_type == "app"]


async def ask(outbox: Outbox, chat: Chat) -> str:
    return await outbox.sim.send_text(outbox.sim.people[0], chat, "hello")


@pytest.mark.slow
async def test_a_card_that_always_fails_is_replaced_by_a_simpler_form(tmp_path: Path) -> None:
    async with open_outbox(tmp_path) as outbox:
        chat = outbox.sim.dm(outbox.sim.people[0])
        outbox.sim.faults.answers.append(failing("interactive"))
        await outbox.promise("1", chat.chat_id, await ask(outbox, chat), "the answer")
        await outbox.sim.until(lambda _: outbox.said(chat) == ["the answer"])
        assert kinds(outbox, chat) == ["post"]
        await outbox.until_due(0)
        assert await outbox.dead() == []


@pytest.mark.slow
async def test_every_form_of_text_may_fail(tmp_path: Path) -> None:
    async with open_outbox(tmp_path) as outbox:
        chat = outbox.sim.dm(outbox.sim.people[0])
        outbox.sim.faults.answers.append(failing("poison"))
        await outbox.promise("1", chat.chat_id, await ask(outbox, chat), "poison")
        for attempts in range(1, 6):
            await outbox.until_postponed(attempts)
            outbox.let_pass(timedelta(minutes=1))
        await outbox.until_due(0)
        assert kinds(outbox, chat) == ["file"]
        [media] = outbox.sim.lark.state.media.values()
        assert media.data == b"poison"


@pytest.mark.slow
async def test_an_answer_in_several_cards_is_complete_if_the_last_one_fails(
    tmp_path: Path,
) -> None:
    answer = "".join(f"Sentence number {n} of it. " for n in range(2_000)) + "The poison."
    async with open_outbox(tmp_path) as outbox:
        chat = outbox.sim.dm(outbox.sim.people[0])
        outbox.sim.faults.answers.append(failing("poison"))
        await outbox.promise("1", chat.chat_id, await ask(outbox, chat), answer)
        await outbox.until_due(0)
        sent = kinds(outbox, chat)
        assert sent == ["interactive"] * (len(sent) - 1) + ["file"]
        [media] = outbox.sim.lark.state.media.values()
        assert media.data.decode() == answer
        assert await outbox.dead() == []


@pytest.mark.slow
async def test_forms_are_kept_while_lark_is_down(tmp_path: Path) -> None:
    async with open_outbox(tmp_path) as outbox:
        chat = outbox.sim.dm(outbox.sim.people[0])
        down = failing("", match="/im/v1/messages")
        outbox.sim.faults.answers.append(down)
        for number in range(3):
            asked = await ask(outbox, chat)
            await outbox.promise(str(number), chat.chat_id, asked, f"answer {number}")
        for _ in range(4):  # attempts of the first message
            left = down.times
            await outbox.sim.until(lambda _: down.times <= left - 3)  # noqa: B023 - awaited here
            outbox.let_pass(timedelta(minutes=2))
        down.times = 0
        outbox.let_pass(timedelta(minutes=2))
        await outbox.sim.until(lambda _: len(outbox.said(chat)) == 3)
        assert outbox.said(chat) == ["answer 0", "answer 1", "answer 2"]
        assert kinds(outbox, chat) == ["interactive"] * 3


@pytest.mark.slow
async def test_a_failing_reply_is_overtaken_by_replies_to_other_messages(tmp_path: Path) -> None:
    async with open_outbox(tmp_path) as outbox:
        chat = outbox.sim.dm(outbox.sim.people[0])
        poison = failing("poison")
        outbox.sim.faults.answers.append(poison)
        first, second, third = [await ask(outbox, chat) for _ in range(3)]
        await outbox.promise("1", chat.chat_id, first, "poison")
        await outbox.promise("2", chat.chat_id, first, "after the poison")
        await outbox.promise("3", chat.chat_id, second, "status")
        await outbox.promise("4", chat.chat_id, third, "another status")
        await outbox.sim.until(lambda _: poison.times <= 10_000 - 4)
        assert outbox.said(chat) == []
        outbox.let_pass(timedelta(seconds=31))
        await outbox.sim.until(lambda _: len(outbox.said(chat)) == 2)
        assert outbox.said(chat) == ["status", "another status"]
        poison.times = 0
        outbox.let_pass(timedelta(minutes=11))
        await outbox.sim.until(lambda _: len(outbox.said(chat)) == 4)
        assert outbox.said(chat)[2:] == ["poison", "after the poison"]


@pytest.mark.parametrize(
    ("scopes", "is_direct", "shown"),
    [
        (APP.scopes, True, ["interactive"]),
        pytest.param(APP.scopes | {GROUP_MESSAGES}, False, ["interactive"], marks=pytest.mark.slow),
        pytest.param(APP.scopes, False, ["interactive", "post"], marks=pytest.mark.slow),
    ],
    ids=["direct", "group with scope", "group without scope"],
)
@pytest.mark.slow
async def test_a_card_whose_response_is_always_lost_is_looked_for(
    tmp_path: Path, scopes: frozenset[str], is_direct: bool, shown: list[str]
) -> None:
    async with (
        LarkSim([App(APP.app_id, APP.secret, scopes=scopes)]) as sim,
        open_outbox(tmp_path, sim) as outbox,
    ):
        chat = sim.dm(sim.people[0]) if is_direct else sim.groups[0]
        sim.faults.answers.append(failing("interactive", "lost"))
        await outbox.promise("1", chat.chat_id, await ask(outbox, chat), "once")
        await outbox.until_due(0)
        assert kinds(outbox, chat) == shown
        assert await outbox.dead() == []


@pytest.mark.slow
async def test_a_success_without_an_id_is_not_sent_twice(tmp_path: Path) -> None:
    async with open_outbox(tmp_path) as outbox:
        chat = outbox.sim.dm(outbox.sim.people[0])
        outbox.sim.faults.answers.append(AnswerFault("no_data", "/reply", times=2))
        await outbox.promise("1", chat.chat_id, await ask(outbox, chat), "once")
        await outbox.until_due(0)
        assert outbox.said(chat) == ["once"]
        assert await outbox.remote("1") == outbox.sim.messages(chat)[-1].message_id


@pytest.mark.slow
async def test_a_reply_in_a_thread_is_found_and_not_mistaken_for_another(tmp_path: Path) -> None:
    app = App(APP.app_id, APP.secret, hears_all=True)
    async with LarkSim([app]) as sim, open_outbox(tmp_path, sim) as outbox:
        person, group = sim.people[0], sim.groups[0]
        root = await sim.send_text(person, group, "root")
        first = await sim.send_text(person, group, "one", reply_to=root, in_thread=True)
        second = await sim.send_text(person, group, "two", reply_to=first)
        gone = failing("unsent", "bad_gateway")
        sim.faults.answers.append(gone)
        await outbox.promise("1", group.chat_id, first, "unsent")
        await outbox.promise("2", group.chat_id, second, "other")
        await sim.until(lambda _: gone.times <= 10_000 - 2)
        outbox.let_pass(timedelta(seconds=31))
        await sim.until(lambda _: outbox.said(group) == ["other"])
        gone.times = 0
        outbox.let_pass(timedelta(minutes=51))
        await sim.until(lambda _: outbox.said(group) == ["other", "unsent"])
        lost = failing("lost", "lost")
        sim.faults.answers.append(lost)
        await outbox.promise("3", group.chat_id, second, "lost")
        await outbox.until_postponed()
        lost.times = 0
        outbox.let_pass(timedelta(minutes=65))
        await outbox.until_due(0)
        assert outbox.said(group) == ["other", "unsent", "lost"]
