"""The unmodified lark-oapi SDK as an app of the simulator: REST and websocket client."""

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple

from internal.simulators.lark.model import App
from internal.simulators.lark.simulator import WAIT_TIMEOUT_SECONDS, LarkSim

EVENTS = (
    "im_message_receive_v1",
    "im_message_recalled_v1",
    "im_message_message_read_v1",
    "im_message_reaction_created_v1",
    "im_message_reaction_deleted_v1",
    "im_chat_member_bot_added_v1",
    "im_chat_member_bot_deleted_v1",
    "im_chat_disbanded_v1",
    "im_chat_access_event_bot_p2p_chat_entered_v1",
)


class Sdk(NamedTuple):
    """The SDK's modules and the loop that runs all its websocket clients."""

    lark: Any
    im: Any
    cardkit: Any
    contact: Any
    ws: Any
    pb: Any
    loop: asyncio.AbstractEventLoop


@contextmanager
def open_sdk() -> Generator[Sdk]:
    """Import the SDK in a thread and run the loop that it binds to."""
    loop = asyncio.new_event_loop()
    found: Future[Sdk] = Future()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.set_exception_handler(lambda *_: None)  # the SDK ignores how its reader ended
        try:
            found.set_result(_import(loop))
        except BaseException as error:
            found.set_exception(error)
            raise
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield found.result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def _import(loop: asyncio.AbstractEventLoop) -> Sdk:
    # ruff: noqa: PLC0415 - five seconds that only these tests should cost
    import lark_oapi as lark  # type: ignore[import-untyped] # the SDK ships no types
    from lark_oapi.api.cardkit import v1 as cardkit  # type: ignore[import-untyped] # as above
    from lark_oapi.api.contact import v3 as contact  # type: ignore[import-untyped] # as above
    from lark_oapi.api.im import v1 as im  # type: ignore[import-untyped] # as above
    from lark_oapi.ws import client as ws  # type: ignore[import-untyped] # as above
    from lark_oapi.ws.pb import pbbp2_pb2 as pb  # type: ignore[import-untyped] # as above

    return Sdk(lark, im, cardkit, contact, ws, pb, loop)


class Bot:
    """An app of the SDK. Events are collected in `heard` as plain JSON.

    `answer` is called for every event in the SDK's thread; its return value responds to clicks.
    """

    def __init__(self, sdk: Sdk, sim: LarkSim, app: App) -> None:
        self.sdk, self.sim, self.app = sdk, sim, app
        self.heard: list[Any] = []
        self.answer: Callable[[Any], Any] = lambda _: None
        self._loop = asyncio.get_running_loop()
        builder = sdk.lark.Client.builder().app_id(app.app_id).app_secret(self.app.secret)
        self.client = builder.domain(sim.url).timeout(20).build()

    async def call(self, method: Callable[[Any], Any], request: Any) -> Any:
        """Call a method of the client, which blocks, in a thread."""
        return await asyncio.to_thread(method, request)

    async def done(self, method: Callable[[Any], Any], request: Any) -> Any:
        """Call a method that must succeed; return its data."""
        response = await self.call(method, request)
        assert response.code == 0, (response.code, response.msg)
        return getattr(response, "data", None)  # not every response has data

    async def ask(
        self, verb: str, path: str, body: Any = None, **query: Any
    ) -> tuple[int, dict[str, Any]]:
        """Send any request through the SDK; return Lark's code and the response."""
        lark = self.sdk.lark
        request = lark.BaseRequest()
        request.http_method = lark.HttpMethod[verb]
        request.uri = f"/open-apis{path}"
        request.token_types = {lark.AccessTokenType.TENANT}
        request.queries = list(query.items())
        request.body = body
        response = await self.call(self.client.request, request)
        answer: dict[str, Any] = json.loads(response.raw.content)
        return answer["code"], answer | {"http": response.raw.status_code}

    def forget_token(self) -> None:
        """Drop the cached token; the SDK never does so itself."""
        key = f"self_tenant_token:{self.app.app_id}"
        self.sdk.lark.core.token.TokenManager.cache.set(key, "", 0)

    async def send(self, chat_id: str, content: Any, kind: str = "text", **more: Any) -> Any:
        """Send a message to a chat; return the code and the response."""
        body = {"receive_id": chat_id, "msg_type": kind, **more}
        body["content"] = content if isinstance(content, str) else json.dumps(content)
        return await self.ask("POST", "/im/v1/messages", body, receive_id_type="chat_id")

    async def sent(self, chat_id: str, content: Any, kind: str = "text", **more: Any) -> str:
        """Send a message that must arrive; return its message_id."""
        code, answer = await self.send(chat_id, content, kind, **more)
        assert code == 0, answer
        return str(answer["data"]["message_id"])

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[Any]:
        """Keep a long connection open; yields the SDK's client."""
        self.sdk.ws.loop = self.sdk.loop  # a channel in this process may have set its own
        client = self.sdk.ws.Client(
            self.app.app_id,
            self.app.secret,
            log_level=self.sdk.lark.LogLevel.CRITICAL,
            event_handler=self._handler(),
            domain=self.sim.url,
            auto_reconnect=False,
        )
        await self.there(client._connect())
        pinging = asyncio.run_coroutine_threadsafe(client._ping_loop(), self.sdk.loop)
        try:
            yield client
        finally:
            pinging.cancel()
            await self.there(client._disconnect())

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait for a state of the SDK's client, which offers no event for it."""

        async def held() -> None:
            while not holds():  # noqa: ASYNC110 - the SDK has no event to wait for
                await asyncio.sleep(0)

        async with asyncio.timeout(WAIT_TIMEOUT_SECONDS):
            await self.there(held())

    async def there(self, work: Any) -> Any:
        """Run a coroutine on the SDK's loop."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.sdk.loop))

    def _handler(self) -> Any:
        lark = self.sdk.lark
        builder = lark.EventDispatcherHandler.builder("", "")
        for name in EVENTS:
            getattr(builder, f"register_p2_{name}")(self._hear)
        return builder.register_p2_card_action_trigger(self._hear).build()

    def _hear(self, event: Any) -> Any:
        said = json.loads(self.sdk.lark.JSON.marshal(event))
        self.heard.append(said)
        self._loop.call_soon_threadsafe(self.sim.lark.changes.notify)  # for `sim.until`
        return self.answer(said)

    def texts(self) -> list[str]:
        """Return the texts of the received messages."""
        return [
            json.loads(one["event"]["message"]["content"]).get("text", "")
            for one in self.heard
            if "message" in one["event"]
        ]
