"""A gateway under the load of many Lark chats."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from internal.simulators.lark.model import App, Chat, Person
from internal.simulators.lark.simulator import LarkSim
from tests.bench.processes import Server, gateway, with_model

APP = App("cli_bench", "secret-for-benches")


@asynccontextmanager
async def served(sim: LarkSim, home: Path, model: str, **settings: str) -> AsyncGenerator[Server]:
    """Run a gateway that is connected to a simulated Lark."""
    lark = {
        "LARKSPUR_CHANNELS__LARK__ENABLED": "true",
        "LARKSPUR_CHANNELS__LARK__APP_ID": APP.app_id,
        "LARKSPUR_CHANNELS__LARK__APP_SECRET": APP.secret,
        "LARKSPUR_CHANNELS__LARK__DOMAIN": sim.url,
    }
    with ExitStack() as stack:
        started = gateway(home, **with_model(model), **lark, **settings)
        server = await asyncio.to_thread(stack.enter_context, started)
        await sim.until(lambda _: sim.lark.delivery.connections, 60)
        yield server
        await asyncio.to_thread(stack.close)


async def answered(sim: LarkSim, person: Person, chat: Chat) -> tuple[float, float]:
    """Send one message; return the milliseconds to its ack and to its reply."""
    begun = time.perf_counter()
    sent = await sim.send_text(person, chat, "bench:words:10", mention_bot=True)

    def acked(_: object) -> bool:
        return any(push.message_id == sent and push.done for push in sim.pushes)

    await sim.until(acked)
    ack = time.perf_counter() - begun
    await until_reply(sim, chat, sent)
    return ack * 1000, (time.perf_counter() - begun) * 1000


async def until_reply(sim: LarkSim, chat: Chat, sent: str, text: str = "word word") -> None:
    def replied(_: object) -> bool:
        return any(each.parent_id == sent and text in each.content for each in sim.messages(chat))

    await sim.until(replied, 60)
