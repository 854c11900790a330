"""An application with the echo channel."""

import asyncio
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from internal.agent.app.chat_delivery import MessageFacts
from internal.agent.app.gateway import Gateway
from internal.agent.app.runs.questions import Actor
from internal.agent.capabilities.instructions.chat_instructions import ChatInstructions
from internal.agent.domain.chats import InboundMessage, OutgoingMessage
from internal.agent.domain.delegation.subtask import Subtask
from internal.agent.domain.ids import QuestionId, RunId
from internal.agent.domain.principals import Principal, Right
from internal.agent.domain.questions import Audience, Question, QuestionRecord
from internal.agent.domain.tasks import Task
from internal.agent.domain.usage import Usage
from internal.agent.store.database import Database, Read, Write
from internal.agent.store.runs import RunEnd
from internal.agent.store.stores import Stores
from internal.channels.chat.answers import ChatRef, CommandResult, MessageContext, TextAnswers
from internal.channels.chat.chat_rules import resolve_rules
from internal.channels.chat.command_handlers import CommandHandlers
from internal.channels.chat.command_parser import parse_command
from internal.channels.chat.policy import ChatUsers
from internal.channels.chat.task_router import TaskRouter
from internal.i18n.chat import ChatPhrases
from internal.observability.clock import SystemClock
from internal.sandbox.workspaces import SessionFolders
from internal.settings.chat import ChatChannelSettings
from internal.tools.instruction_files import WorkspaceInstructionFiles
from internal.tools.instruction_trust import InstructionTrust
from internal.tools.protected_paths import ProtectedPaths
from tests.support.echo_channel import EchoService, EchoTransport, echo_message
from tests.support.store_records import a_run, a_task
from tests.support.web_app import defaults

CHAT = "echo:test:direct"


T0, LATER = "2026-01-31T08:00:00.000Z", "2999-01-01T00:00:00.000Z"


SETTINGS = ChatChannelSettings(react_emoji="off", progress="off")


@dataclass
class EchoApp:
    """The gateway, the service and the dependencies of the chat application's modules."""

    database: Database
    stores: Stores
    gateway: Gateway
    home: Path
    service: EchoService = field(default_factory=EchoService)
    settings: ChatChannelSettings = SETTINGS
    clock: SystemClock = field(default_factory=SystemClock)

    def __post_init__(self) -> None:
        self.transport = EchoTransport(self.service)
        self.users = ChatUsers(self.transport, self.gateway.access, self.settings)
        self.answers = TextAnswers(self.gateway, self.users)
        self.router = TaskRouter(self.gateway, defaults())
        protected = ProtectedPaths(self.home, session_folders=[self.home / "workspaces"])
        files = WorkspaceInstructionFiles(self.home, protected, InstructionTrust(self.home))
        folders = SessionFolders(self.home / "workspaces")
        self.instructions = ChatInstructions(self.database, self.stores, files, folders.path)

    async def message(
        self, text: str, user: str = "mei", *roles: Right, is_direct: bool = True, **changes: Any
    ) -> MessageContext:
        """Accept a message and return it as the handler hands it on."""
        raw = msgspec.json.encode({"text": text}).decode()
        message_id = self.service.new_id()
        row = InboundMessage("echo", "test", message_id, "direct", f"echo:test:{user}", raw, T0)
        await asyncio.wrap_future(self.gateway.delivery.accept(row))
        facts = await self.database.read(self._facts)
        principal = Principal(row.principal, roles=frozenset(roles or ("talk", "operate")))
        actor = Actor(principal, "echo", CHAT)
        incoming = echo_message(message_id, text)._replace(is_direct=is_direct, **changes)
        chat = ChatRef("direct", "echo-scope", is_direct)
        rules = resolve_rules(self.settings, "direct", facts.settings)
        return MessageContext(actor, row, chat, ChatPhrases("en"), incoming, facts, rules)

    async def again(self, message: MessageContext) -> MessageContext:
        """Return a message as it would be handed on now: the settings of its chat may differ."""
        chosen = await self.gateway.chats.get_settings(CHAT)
        return message._replace(rules=resolve_rules(self.settings, "direct", chosen))

    async def command(self, text: str, *who: str) -> CommandResult:
        """Carry out the command of a message and return its result."""
        command = parse_command(text)
        assert command is not None
        handlers = CommandHandlers(
            self.gateway,
            self.users,
            self.answers,
            defaults=defaults(),
            instructions=self.instructions,
        )
        return await handlers.handle(command, await self.message(text, *who))  # type: ignore[arg-type]  # roles

    def _facts(self) -> Read[MessageFacts]:
        questions = yield from self.stores.questions.list_open_in_chat(CHAT)
        settings = yield from self.stores.chats.get_settings(CHAT)
        return MessageFacts(False, frozenset(), questions, settings)

    async def submit(self, text: str, user: str = "mei", *roles: Right) -> tuple[RunId, bool]:
        """Route a message and return its run, and whether it was added to an earlier one."""
        return await self.router.submit(await self.message(text, user, *roles), text)

    async def add_subtask(
        self, root: RunId, number: int, role: str = "analyst", parent: RunId | None = None
    ) -> Task:
        """Store a queued subtask of a run, or below it of another subtask's run."""

        def work() -> Write[Task]:
            run = yield from self.stores.runs.get(root)
            above = run if parent is None else (yield from self.stores.runs.get(parent))
            assert run is not None
            assert above is not None
            origin = yield from self.stores.tasks.get(run.task_id)
            assert origin is not None
            place = Subtask(
                run.task_id, root, "call-1", number, 3, role, f"read site {number}",
                depth=1 if parent is None else 2,
            )  # fmt: skip
            task = a_task(
                f"task-sub-{root[-4:]}-{number}", run.session_id, kind="background",
                lane=f"lane-{number}", parent_task_id=above.task_id, origin=origin.origin,
                instruction=f"read site {number}",
            )  # fmt: skip
            yield from self.stores.tasks.add(task, None)
            sub = a_run(
                task.id.replace("task", "run"), run.session_id, task_id=task.id, lane=task.lane,
                parent_run_id=above.id, subtask=place,
            )  # fmt: skip
            yield from self.stores.runs.add(sub, T0)
            return task

        return await self.database.write(work)

    async def end(self, run_id: RunId) -> None:
        """Complete a queued run."""

        def work() -> Write[None]:
            run = yield from self.stores.runs.claim(run_id, "worker", lease_until=LATER, now=T0)
            assert run is not None
            end = RunEnd("completed", "final_answer", Usage(), 0.0, "", "", T0)
            assert (yield from self.stores.runs.end(run_id, run.fence, end))
            yield from self.stores.tasks.set_status(run.task_id, end.status, None, now=T0)

        await self.database.write(work)

    async def ask(
        self, number: int = 1, title: str = "Which colour?", *, is_approval: bool = False
    ) -> QuestionRecord:
        """Store an open question of a new run, and its post."""
        run_id, _ = await self.submit("paint it")
        run = await self.database.read(partial(self.stores.runs.get, run_id))
        assert run is not None
        question_id = QuestionId(f"question-abcd-{number}")
        question = Question(question_id, "approval" if is_approval else "clarify", title)
        ids = (run.id, run.task_id, run.session_id)
        audience: Audience = "operators" if is_approval else "asker"
        record = QuestionRecord(question, *ids, "echo:test:mei", CHAT, audience, T0, LATER)
        await self.database.write(partial(self.stores.questions.add, record))
        outgoing = OutgoingMessage(
            f"{question_id}:asked", "echo", "test", "direct", "", "", question_id=question_id
        )
        await self.database.write(partial(self.stores.outbox.add, outgoing, T0))
        [begun] = await self.gateway.delivery.begin_due("echo", "test", 1)
        await self.gateway.delivery.mark_sent(begun.pending.number, f"post-{number}")
        return record
