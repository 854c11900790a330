"""A chat channel: the application of one account of a chat service."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from internal.agent.app.chat_delivery import Acceptance
from internal.agent.app.files.remote_files import RemoteFiles
from internal.agent.app.gateway import Gateway
from internal.agent.app.mentions import MentionTool
from internal.agent.app.processes.leadership import Leaderships
from internal.agent.app.runs.question_recipients import QuestionRecipients
from internal.agent.app.supervision import Supervisor
from internal.agent.app.task_options import TaskDefaults
from internal.agent.capabilities.instructions.chat_instructions import ChatInstructions
from internal.agent.domain.chats import AcceptedMessage, InboundMessage, OutboxBacklog
from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.ports.runtime import Clock
from internal.channels.chat.answers import ActionAnswers
from internal.channels.chat.chat_queues import RETRY_SECONDS, ChatQueues
from internal.channels.chat.displays.run_buttons import RunButtonHandler
from internal.channels.chat.displays.run_display import RunDisplayLoop
from internal.channels.chat.displays.stop_button import StopButtonHandler
from internal.channels.chat.message_handler import MessageHandler, MessageListener
from internal.channels.chat.message_marks import MessageMarks
from internal.channels.chat.outbox_sender import OutboxSender, SessionPlaces
from internal.channels.chat.policy import ChatUsers, listed_operators
from internal.channels.chat.queued_message import QueuedMessage
from internal.channels.chat.transport import (
    ActionResult,
    ChatAction,
    ChatTransport,
    ReceivedMessage,
    RunAction,
    StopAction,
    SuggestionAction,
    TransportHealth,
    UserAction,
)
from internal.channels.chat.urgent_questions import UrgentQuestions
from internal.i18n.chat import ChatTexts
from internal.settings.chat import ChatChannelSettings

log = logging.getLogger(__name__)

_RELEASE_TIMEOUT_SECONDS = 2.0


class ChatApp(msgspec.Struct, frozen=True):
    """The application services that chat channels use."""

    gateway: Gateway
    defaults: TaskDefaults
    clock: Clock
    texts: ChatTexts
    supervisor: Supervisor
    remote_files: RemoteFiles
    instructions: ChatInstructions
    leaderships: Leaderships
    question_recipients: QuestionRecipients
    mentions: MentionTool
    session_folder: Callable[[SessionId], str]
    """Returns the folder of a session on this machine."""
    public_url: str = ""
    """The address of the page, "" if it has none that other machines can reach."""


def channel_defaults(settings: ChatChannelSettings, defaults: TaskDefaults) -> TaskDefaults:
    """Return the task defaults of a channel; the agent's defaults apply to unset values."""
    return replace(
        defaults,
        profile=settings.profile or defaults.profile,
        plan_review=settings.plan_review or defaults.plan_review,
        question_ttl_minutes=settings.question_ttl_minutes or defaults.question_ttl_minutes,
    )


class ChatChannel:
    """Connects one transport to the application. Nothing is connected before `run`.

    Of the processes that serve one account, each accepts messages and answers actions. One of them,
    the leader, processes the messages, sends, and displays runs.
    """

    def __init__(
        self, app: ChatApp, settings: ChatChannelSettings, transport: ChatTransport
    ) -> None:
        self._app, self._transport = app, transport
        gateway, clock, texts = app.gateway, app.clock, app.texts
        defaults = channel_defaults(settings, app.defaults)
        people = ChatUsers(transport, gateway.access, settings)
        account = f"{transport.name}:{transport.app}"
        self._leadership = app.leaderships.of_account(account)
        self._displays = RunDisplayLoop(
            transport,
            gateway,
            clock,
            settings=settings,
            texts=texts,
            on_outgoing=self._wake_sender,
            isolated=defaults.isolated,
        )
        self._sender = OutboxSender(
            people,
            gateway.delivery,
            clock,
            files=gateway.files,
            displays=self._displays,
            leadership=self._leadership,
            texts=texts,
            places=SessionPlaces(app.session_folder, app.public_url),
        )
        gateway.delivery.add_loop(self._sender.wake)
        app.remote_files.add_account(account, transport.open_file)
        app.mentions.add_account(account, transport.list_members)
        app.question_recipients.add_account(
            account, partial(listed_operators, settings, transport.is_user)
        )
        self._marks = MessageMarks(transport, gateway)
        self._urgent = UrgentQuestions(transport, gateway, people, settings)
        listener = MessageListener(
            on_run=self._displays.follow,
            on_received=self._confirm,
            on_outgoing=self._sender.wake,
        )
        handler = MessageHandler(
            transport,
            gateway,
            people,
            settings=settings,
            defaults=defaults,
            texts=texts,
            listener=listener,
            instructions=app.instructions,
        )
        self._queues = ChatQueues(transport, gateway.delivery, handler)
        gateway.delivery.add_loop(self._queues.wake)
        self._actions = ActionAnswers(
            transport,
            gateway,
            people,
            texts=texts,
            on_answered=self._on_answered,
            start=self._start,
        )
        self._stop_button = StopButtonHandler(transport, gateway, people, texts)
        self._run_buttons = RunButtonHandler(
            transport, gateway, people, texts, clock=clock, on_run=self._displays.follow
        )
        self._people = people
        self._stopping = asyncio.Event()
        self._tasks: asyncio.TaskGroup | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def name(self) -> str:
        """The name of the channel in the registry."""
        return self._transport.name

    @property
    def link(self) -> TransportHealth:
        """The state of the connection, without a call to the service."""
        return self._transport.health

    @property
    def is_leading(self) -> bool:
        """Whether this process processes and sends the messages of the account."""
        return self._leadership.held is not None

    @property
    def is_led_elsewhere(self) -> bool:
        """Whether another process does so."""
        return self._leadership.is_elsewhere

    @property
    def problem(self) -> str:
        """Description of a missing permission, "" if none is known to be missing."""
        return self._urgent.problem

    async def backlog(self) -> OutboxBacklog:
        """Return how many messages wait too long to be sent, and were given up recently."""
        delivery = self._app.gateway.delivery
        return await delivery.backlog(self._transport.name, self._transport.app)

    def stop(self) -> None:
        """Ask `run` to return: nothing more is received, and displays are released."""
        self._stopping.set()

    async def close(self) -> None:
        """Close the connections of a channel that only fetched files; `run` closes them itself."""
        await self._transport.close()

    async def run(self) -> None:
        """Serve the account until `stop`, including messages accepted or left unsent earlier."""
        self._loop = asyncio.get_running_loop()
        try:
            with self._app.gateway.listen_for_messages(self._sender.wake):
                await self._serve(self._app.supervisor)
        finally:
            await self._release()

    async def _serve(self, supervisor: Supervisor) -> None:
        receive = partial(self._transport.run, self._accept, self._handle_action)
        try:
            async with asyncio.TaskGroup() as self._tasks:
                receiving = self._tasks.create_task(
                    supervisor.repeat(f"{self.name} receiver", receive)
                )
                leading = self._tasks.create_task(self._leadership.run(self._lead, supervisor))
                await self._stopping.wait()
                receiving.cancel()
                await asyncio.wait([receiving])
                await self._displays.settle()
                leading.cancel()
        finally:
            self._tasks = None

    async def _lead(self) -> None:
        supervisor = self._app.supervisor
        with self._app.gateway.watch_commits(self._on_foreign_commit):
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._queues.run(supervisor, self._leadership))
                tasks.create_task(self._sender.run(supervisor))
                tasks.create_task(self._displays.run(supervisor))
                tasks.create_task(self._marks.run(supervisor))
                tasks.create_task(self._urgent.run(supervisor))
                tasks.create_task(supervisor.repeat(f"{self.name} history", self._follow_history))

    async def _follow_history(self) -> None:
        transport = self._transport
        received = self._app.gateway.received_messages(transport.name, transport.app)
        await transport.follow_history(received, self._accept)

    def _on_foreign_commit(self) -> None:
        """Look for messages that other gateways accepted, and that their runs left to be sent."""
        self._queues.wake()
        self._sender.wake()

    def _accept(self, message: ReceivedMessage) -> Future[Acceptance]:
        """Store a message, from the thread of its connection.

        The event loop takes no part in it: Lark's deadline holds however busy the loop is.

        Raises:
            StoreError: it is not stored and must not be acknowledged.
        """
        row = InboundMessage(
            channel=self._transport.name,
            app=self._transport.app,
            message_id=message.message_id,
            chat_id=message.chat_id,
            principal=self._people.principal_id(message.user_id),
            raw=message.raw,
            received=rfc3339(self._app.clock.now()),
            sent="" if message.sent_at is None else rfc3339(message.sent_at),
        )
        accepted = self._app.gateway.delivery.accept(
            row, wait=RETRY_SECONDS[0], leader=self._leadership.held
        )
        accepted.add_done_callback(partial(self._hand_over, row, message.decoded))
        return accepted

    def _hand_over(
        self, row: InboundMessage, decoded: object, accepted: Future[Acceptance]
    ) -> None:
        """Put a message that is new into its queue; called in a thread of the database."""
        if accepted.exception() is not None or self._loop is None:
            return
        if (found := accepted.result()) is not Acceptance.KNOWN:
            is_begun = found is Acceptance.BEGUN
            message = QueuedMessage(AcceptedMessage(row), decoded, is_begun=is_begun)
            with suppress(RuntimeError):  # the loop is closed: the next process takes the message
                self._loop.call_soon_threadsafe(self._queues.take, message)

    async def _release(self) -> None:
        try:
            async with asyncio.timeout(_RELEASE_TIMEOUT_SECONDS):
                await self._displays.release()
        except (TimeoutError, LarkspurError) as error:
            log.warning("leases of run displays kept", extra={"reason": str(error)})
        await self._transport.close()

    async def _handle_action(self, action: UserAction) -> ActionResult:
        match action:
            case StopAction():
                return await self._stop_button.handle(action)
            case RunAction():
                return await self._run_buttons.handle(action)
            case SuggestionAction():
                return await self._start_suggestion(action)
            case ChatAction():
                return await self._actions.handle(action)

    async def _start_suggestion(self, action: SuggestionAction) -> ActionResult:
        """Accept a suggested message as if the user had written it, once.

        Raises:
            StoreError: nothing was stored.
        """
        received, phrases = action.received, self._app.texts.phrases_for(action.text)
        principal = await self._people.principal(
            received.user_id, received.chat_id, is_external=action.is_external
        )
        if not principal.may("talk"):
            return ActionResult("warning", phrases("not_allowed"))
        acceptance = await asyncio.wrap_future(self._accept(received))
        if acceptance is Acceptance.KNOWN:
            return ActionResult("info", phrases("suggestion_known"))
        return ActionResult("success", phrases("suggestion_started"))

    def _wake_sender(self) -> None:
        self._sender.wake()

    def _on_answered(self, run_id: RunId) -> None:
        self._sender.wake()
        self._displays.follow(run_id)

    def _confirm(self, message_id: str, run_id: RunId | None) -> None:
        self._start(self._marks.mark_received(message_id, run_id))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start work that handles its own errors and may be lost when the channel stops."""
        if self._tasks is None:
            work.close()
        else:
            self._tasks.create_task(work)
