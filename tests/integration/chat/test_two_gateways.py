"""Two gateways on one database serve one account of a chat service."""

from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.chats import OutgoingMessage
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.store.runs import LeaderFence
from internal.channels.chat.channel import ChatChannel
from internal.settings.chat import ChatAccess, ChatChannelSettings
from tests.support.agent_app import Core, open_agent
from tests.support.anthropic_server import Reply, ScriptedAnthropic
from tests.support.chat_services import EchoChat, eventually, open_channel
from tests.support.chat_settings import with_values
from tests.support.echo_channel import EchoTransport

SETTINGS = ChatChannelSettings(
    react_emoji="off", progress="off", busy_mode="queue", access=ChatAccess(operate=("*",))
)
ACCOUNT = "echo:test"


def answer(request: dict[str, Any]) -> Reply:
    """Answer with the last text of the person."""
    content = request["messages"][-1]["content"]
    text = content if isinstance(content, str) else content[-1]["text"]
    return Reply(text=f"re {text.split()[-1]}", hold="go" if "wait" in text else None)


@dataclass
class Place:
    """Two gateways, the first one started first, and the service between them."""

    service: EchoChat
    cores: list[Core]
    channels: list[ChatChannel]

    @property
    def leaders(self) -> list[bool]:
        return [channel.is_leading for channel in self.channels]

    async def depose(self) -> LeaderFence:
        """Make a process the leader that does nothing, as one that thinks the leader is dead."""
        services = self.cores[0].services
        store, now = services.stores.leaderships, services.clock.now()
        seen = await services.database.read(partial(store.get, ACCOUNT))
        claim = partial(store.claim, ACCOUNT, "far", rfc3339(now.replace(year=2999)), seen)
        held = await services.database.write(claim)
        assert held is not None
        return held


@asynccontextmanager
async def two_gateways(
    folder: Path, count: int = 2, settings: ChatChannelSettings = SETTINGS
) -> AsyncGenerator[Place]:
    environ = {"LARKSPUR_DISPATCH__LEASE_SECONDS": "1"}
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(ScriptedAnthropic(answer))
        place = Place(EchoChat(), [], [])
        for _ in range(count):
            here = await stack.enter_async_context(
                open_agent(folder, [], environ, model, is_alone=False)
            )
            place.cores.append(here)
            channel = open_channel(place.service, here, settings)
            place.channels.append(await stack.enter_async_context(channel))
        await eventually(
            lambda: len(place.service.service.connected) == count and any(place.leaders)
        )
        yield place


def has_replies(place: Place, chat: int, count: int) -> bool:
    return len(place.service.replies(chat)) >= count


async def test_chats_keep_their_order_and_each_message_is_answered_once(tmp_path: Path) -> None:
    async with two_gateways(tmp_path) as place:
        asked: dict[int, list[str]] = defaultdict(list)
        for number in range(6):
            for chat in range(4):
                message_id = await place.service.say(f"say {number}", chat)
                asked[chat].append(message_id)
        for chat in range(4):
            expected = [(f"re {number}", asked[chat][number]) for number in range(6)]
            await place.service.until(partial(has_replies, place, chat, 6))
            assert place.service.replies(chat) == expected
        assert place.leaders == [True, False]
        posts = place.service.service.posts
        assert len({post.key for post in posts}) == len(posts) == place.service.service.attempts


async def test_the_other_gateway_goes_on_when_the_leader_stops(tmp_path: Path) -> None:
    async with two_gateways(tmp_path) as place:
        await place.service.say("say 1")
        await place.service.until(lambda: len(place.service.replies()) == 1)
        place.channels[0].stop()
        await eventually(lambda: place.leaders == [False, True])
        await place.service.say("say 2")
        await place.service.until(lambda: len(place.service.replies()) == 2)
        assert [text for text, _ in place.service.replies()] == ["re 1", "re 2"]


@pytest.mark.slow
async def test_a_progress_message_goes_over_to_the_next_leader(tmp_path: Path) -> None:
    settings = with_values(SETTINGS, progress="card")
    async with two_gateways(tmp_path, settings=settings) as place:
        asked = await place.service.say("say and wait 1")
        await place.service.until(lambda: bool(place.service.displays()))
        place.channels[0].stop()
        await eventually(lambda: place.leaders == [False, True])
        place.cores[0].model.release("go")
        await place.service.until(lambda: place.service.replies() == [("re 1", asked)])
        assert len(place.service.service.posts) == 1, "the reply replaced the progress message"


@pytest.mark.slow
async def test_a_silent_leader_is_replaced_after_its_lease(tmp_path: Path) -> None:
    async with two_gateways(tmp_path) as place:
        await place.depose()
        await eventually(lambda: place.leaders == [False, False])
        await place.service.say("say 1")
        await place.service.until(lambda: len(place.service.replies()) == 1)
        assert [text for text, _ in place.service.replies()] == ["re 1"]
        assert place.leaders.count(True) == 1


@pytest.mark.slow
async def test_a_deposed_leader_sends_nothing(tmp_path: Path) -> None:
    async with two_gateways(tmp_path, 1) as place:
        held = await place.depose()
        services = place.cores[0].services
        outgoing = OutgoingMessage("key-1", "echo", EchoTransport.app, "chat0", "", "hello")
        add = partial(services.stores.outbox.add, outgoing, rfc3339(services.clock.now()))
        await services.database.write(add)
        services.gateway.delivery.wake_loops()
        await eventually(lambda: place.leaders == [False])
        assert place.service.service.attempts == 0

        await services.database.write(partial(services.stores.leaderships.release, held))
        await place.service.until(lambda: place.service.replies() == [("hello", "")])
        assert place.service.service.attempts == 1


async def test_messages_gather_whichever_gateway_accepts_them(tmp_path: Path) -> None:
    settings = with_values(SETTINGS, gather_ms=30_000)
    async with two_gateways(tmp_path, settings=settings) as place:
        asked = [await place.service.say(f"say {number}") for number in range(3)]
        await place.service.say("/status")
        await place.service.until(partial(has_replies, place, 0, 2))
        answers = [each for each in place.service.replies() if each[0].startswith("re")]
        assert answers == [("re 2", asked[0])]
