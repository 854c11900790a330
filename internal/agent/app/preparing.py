"""Preparing: what a run begins with: the conversation, the task, the prompt, the tools."""

import base64
import hashlib
from functools import partial

import msgspec

from internal.agent.app.context import RunContext
from internal.agent.app.granting import written_rules
from internal.agent.app.model_book import ModelBook
from internal.agent.app.prompting import system_prompt
from internal.agent.domain.clipping import clipped
from internal.agent.domain.context import Window, message_tokens, text_tokens, tools_tokens
from internal.agent.domain.diagnostics import ContextSnapshot
from internal.agent.domain.gates import UI_SPECS
from internal.agent.domain.messages import Image, Message, Text, ToolResult
from internal.agent.domain.tasks import Attachment, Task
from internal.agent.domain.terms import Terms
from internal.agent.domain.turn import Turn
from internal.agent.ports.attachments import Attachments
from internal.agent.ports.clock import Clock
from internal.agent.ports.database import Database
from internal.agent.ports.stores import Stores
from internal.agent.ports.tools import ToolSource

MOST_MESSAGES = 200
"""So many messages of the conversation are read; the window then takes what fits."""

HISTORY_SHARE = 0.5
"""Earlier conversation may take this share of the context window."""

SEEN_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
MOST_IMAGE_BYTES = 5_000_000
LONGEST_FILE = 60_000
"""Characters of an attached text that go into the first message."""


class Preparation:
    """Makes the Turn of a run."""

    def __init__(
        self,
        database: Database,
        stores: Stores,
        tools: ToolSource,
        attachments: Attachments,
        book: ModelBook,
        clock: Clock,
    ) -> None:
        self._database = database
        self._stores = stores
        self._tools = tools
        self._attachments = attachments
        self._book = book
        self._clock = clock

    async def prepare(self, context: RunContext, workspace: str) -> tuple[Turn, ContextSnapshot]:
        """Return a fresh Turn and what it begins with; `workspace` is its folder.

        Raises:
            LarkspurError: something that the task needs is not there.
        """
        brief = context.task.brief
        tools = (
            *(spec for spec in self._tools.specs() if brief.profile.grants(spec.name)),
            *UI_SPECS,
        )
        terms = Terms(
            run_id=context.ids.run_id,
            system=system_prompt(brief.profile, brief.gates, workspace, self._clock.now()),
            model=brief.model,
            tools=tools,
            policy=brief.policy,
            limits=brief.limits,
            gates=brief.gates,
            workspace=workspace,
            people=brief.people,
            approvals=brief.approvals,
            plan_review=brief.plan_review,
        )
        history = await self._history(context.task)
        turn = Turn(terms=terms, messages=[*history], task_at=len(history), window=Window())
        turn.messages.append(await self._task_message(context.task))
        if _has_images(turn.messages[-1]):  # what is seen is acted on at once (seed 000)
            turn.terms = msgspec.structs.replace(terms, plan_review="off")
        turn.allowed(await written_rules(self._database, self._stores, context.task))
        return turn, _snapshot(turn)

    async def _history(self, task: Task) -> list[Message]:
        """Return the newest messages that fit, beginning with a person's words."""
        rows = await self._database.read(
            partial(self._stores.sessions.messages, task.session_id, None, MOST_MESSAGES)
        )
        room = int(self._book.limits(task.brief.model).context_window * HISTORY_SHARE)
        kept: list[Message] = []
        for _, _, message, _ in rows:  # the newest comes first
            room -= message_tokens(message)
            if room < 0:
                break
            kept.append(message)
        kept.reverse()
        while kept and (kept[0].role != "user" or _has_results(kept[0])):
            kept.pop(0)
        return kept

    async def _task_message(self, task: Task) -> Message:
        parts = [await self._shown(attachment) for attachment in task.attachments]
        images = tuple(part for part in parts if isinstance(part, Image))
        texts = tuple(part for part in parts if isinstance(part, Text))
        return Message("user", (*images, *texts, Text(task.instruction)))

    async def _shown(self, attachment: Attachment) -> Image | Text:
        """Return an attachment as the model can see it."""
        content = await self._attachments.get(attachment.sha256)
        if attachment.media_type in SEEN_IMAGES and len(content) <= MOST_IMAGE_BYTES:
            return Image(attachment.media_type, base64.b64encode(content).decode())
        name = clipped(attachment.name, 200).replace('"', "'")
        try:
            text = clipped(content.decode(), LONGEST_FILE)
        except UnicodeDecodeError:
            text = f"({len(content):,} bytes of {attachment.media_type}: not readable as text)"
        return Text(f'<attachment name="{name}">\n{text}\n</attachment>\n')


def _has_results(message: Message) -> bool:
    return any(isinstance(part, ToolResult) for part in message.parts)


def _has_images(message: Message) -> bool:
    return any(isinstance(part, Image) for part in message.parts)


def _snapshot(turn: Turn) -> ContextSnapshot:
    weight = sum(message_tokens(message) for message in turn.messages)
    fixed = text_tokens(turn.terms.system) + tools_tokens(turn.terms.tools)
    digest = hashlib.sha256(msgspec.json.encode((turn.terms.system, turn.messages)))
    return ContextSnapshot(
        messages=len(turn.messages),
        tools=len(turn.terms.tools),
        estimated_tokens=weight + fixed,
        sha256=digest.hexdigest(),
    )
