"""Many chats at once: people in a simulated Lark send numbered messages, and each is answered.

The processes that answer are up to the caller: one gateway, or several gateways and workers.
"""

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from internal.simulators.lark.model import Chat, Person
from internal.simulators.lark.simulator import LarkSim
from tests.chaos.conversation import deliver_again
from tests.support.lark_gateway import shown_text
from tests.support.scripted_model import Reply

_MESSAGE = re.compile(r"chat (\d+) message (\d+)")


def echo(request: dict[str, Any]) -> Reply:
    """Return the reply of the model: it repeats the newest message."""
    found = _MESSAGE.findall(json.dumps(request["messages"]))
    return Reply(text="chat {} message {}".format(*found[-1]))


@dataclass
class Crowd:
    """People with a direct chat each, who send `count` messages each at random intervals."""

    sim: LarkSim
    rng: Random
    count: int
    chats: Sequence[tuple[Person, Chat]] = ()
    sent: dict[str, list[str]] = field(default_factory=dict)
    """The ids of the messages of each chat, in order."""
    _is_answered: bool = False

    def gather(self, chats: int) -> None:
        """Add the people to Lark."""
        people = [self.sim.lark.state.add_person(f"Person {number}") for number in range(chats)]
        self.chats = [(person, self.sim.dm(person)) for person in people]

    async def talk(self, max_pause_seconds: float) -> None:
        """Let everybody send all messages, and wait until each has a reply."""
        async with asyncio.TaskGroup() as tasks:
            for number, (person, chat) in enumerate(self.chats):
                tasks.create_task(self._send_all(number, person, chat, max_pause_seconds))
        total = self.count * len(self.chats)
        await self.sim.until(lambda _: sum(map(self._count_replies, self.chats)) >= total, 600)
        self._is_answered = True
        self.sim.lark.changes.notify()

    async def deliver_again(self) -> None:
        """Deliver untaken events to each new connection, until all messages are answered."""
        await deliver_again(self.sim, lambda: self._is_answered)

    async def _send_all(self, number: int, person: Person, chat: Chat, max_pause: float) -> None:
        sent = self.sent[chat.chat_id] = list[str]()
        for index in range(self.count):
            sent.append(await self.sim.send_text(person, chat, f"chat {number} message {index}"))
            await asyncio.sleep(self.rng.uniform(0, max_pause))  # people type at any time

    def _count_replies(self, place: tuple[Person, Chat]) -> int:
        """Return how many messages of the bot a chat has."""
        return sum(one.sender_type == "app" for one in self.sim.messages(place[1]))

    def check(self, accepted: Sequence[str]) -> None:
        """Check that each message has one reply, with its own text, in the order of acceptance.

        Lark resends untaken messages, so that one may arrive after a later message.
        """
        for number, (_, chat) in enumerate(self.chats):
            sent = self.sent[chat.chat_id]
            found = [one for one in self.sim.messages(chat) if one.sender_type == "app"]
            order = [message_id for message_id in accepted if message_id in sent]
            assert sorted(order) == sorted(sent)
            texts = [shown_text(self.sim, one) or one.content for one in found]
            expected = [f"chat {number} message {sent.index(each)}" for each in order]
            assert texts == expected, f"{texts} instead of {expected}"
            assert [one.parent_id for one in found] == order
