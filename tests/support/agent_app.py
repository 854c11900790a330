"""A gateway in the test's process: real database, real tools, a scripted model."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from internal.agent.app.background_task import background_task
from internal.agent.app.events.subscription import Cursor
from internal.agent.app.gateway import Gateway
from internal.agent.app.runs.creation import Submission, Submitted
from internal.agent.app.runs.owners import OwnerWatch
from internal.agent.app.runs.questions import Actor
from internal.agent.app.runs.recovery import Recovery
from internal.agent.app.task_options import TaskOptions, build_run_spec
from internal.agent.domain.answers import AnswerInput
from internal.agent.domain.events.envelope import EventRecord
from internal.agent.domain.ids import QuestionId, SessionId
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.questions import QuestionRecord
from internal.agent.domain.tasks import Attachment, Run
from internal.agent.ports.runtime import Clock
from internal.config.loader import load
from internal.database_address.address import is_postgres
from internal.llm.retry import Sleep
from internal.storage.database_url import database_path
from larkspur.services import (
    GatewayServices,
    Services,
    make_gateway,
    make_terminal_dispatcher,
    open_gateway,
)
from tests.support.anthropic_server import Call, Reply, Rules, ScriptedAnthropic
from tests.support.database_files import write_new_database
from tests.support.scripted_model import ScriptedServer

WAIT_SECONDS = 150.0
"""Below the time limit of a test, so that a test that waits in vain reports its state."""

TERMINAL = {"workflow.result.final", "workflow.result.cancelled"}


@dataclass
class Core:
    """A running gateway with the operations used by tests."""

    services: GatewayServices
    model: ScriptedServer
    ended: list[dict[str, Any]] = field(default_factory=list)

    async def submit(
        self,
        text: str,
        session: SessionId | None = None,
        *,
        people: bool = True,
        attachments: tuple[Attachment, ...] = (),
        profile: str | None = None,
        **options: Any,
    ) -> Submitted:
        chosen = TaskOptions(**{"permission_mode": Mode.ALL, **options})
        spec = msgspec.structs.replace(
            build_run_spec(self.services.defaults, chosen, LOCAL_OWNER, profile), people=people
        )
        submission = Submission(text, spec, "web", session, attachments)
        return await self.services.gateway.submit(submission, LOCAL_OWNER)

    async def answer(
        self, question_id: str, decision: str = "approve", text: str = "", **more: Any
    ) -> QuestionRecord:
        """Answer a question as the local owner on the web page."""
        given = msgspec.convert({"decision": decision, "text": text, **more}, AnswerInput)
        who = Actor(LOCAL_OWNER, "web")
        return await self.services.gateway.answer(QuestionId(question_id), given, who)

    async def asked(self, submitted: Submitted, number: int = 1) -> dict[str, Any]:
        """Return the payload of the n-th question of a run once the run waits for the answer."""
        seen: list[dict[str, Any]] = []

        def waits(each: dict[str, Any]) -> bool:
            if each["run_id"] != submitted.run_id:
                return False
            if each["event"] == "workflow.question.asked":
                seen.append(each["payload"])
            return len(seen) == number and each["payload"].get("status") == "waiting"

        await self.until(submitted.session_id, waits)
        return seen[-1]

    async def until(
        self, session: SessionId, wanted: Callable[[dict[str, Any]], bool]
    ) -> list[dict[str, Any]]:
        """Return the envelopes of a session, ephemeral ones included, up to a wanted one."""
        start = Cursor(self.services.broadcaster.epoch, 0)
        seen: list[dict[str, Any]] = []
        with suppress(TimeoutError):
            async with (
                asyncio.timeout(WAIT_SECONDS),
                aclosing(self.services.gateway.watch(frozenset({session}), start)) as batches,
            ):
                async for batch in batches:
                    for shown in batch:
                        if isinstance(shown, EventRecord):
                            seen.append(msgspec.json.decode(shown.json))
                            if wanted(seen[-1]):
                                return seen
        raise AssertionError(f"no such event came after {[each['event'] for each in seen]}")

    async def end_of(self, submitted: Submitted) -> list[dict[str, Any]]:
        """Return the envelopes of a session up to the end of a run."""
        return await self.until(
            submitted.session_id,
            lambda each: each["run_id"] == submitted.run_id and each["event"] in TERMINAL,
        )

    async def run(self, submitted: Submitted) -> Run:
        return await self.services.gateway.queries.latest_run(submitted.task_id, LOCAL_OWNER)

    async def durable(self, submitted: Submitted) -> list[dict[str, Any]]:
        """Return the stored envelopes of a run."""
        page = await self.services.gateway.queries.events(
            submitted.session_id, LOCAL_OWNER, limit=10_000
        )
        rows = (row for row in page.events if row.run_id == submitted.run_id)
        return [msgspec.json.decode(row.json) for row in rows]


def plain_gateway(services: Services) -> Gateway:
    """Return a gateway on the services that executes no runs itself."""
    return make_gateway(services, make_terminal_dispatcher(services))


def make_recovery(services: Services, clock: Clock | None = None) -> Recovery:
    """Return the recovery of a process that has just started: it has not seen any lease before."""
    return Recovery(
        services.database,
        services.stores,
        broadcaster=services.broadcaster,
        clock=clock or services.clock,
        owners=OwnerWatch(services.processes, clock or services.clock, 30.0),
    )


def plan(*steps: str, **more: Any) -> Call:
    return Call("plan", {"goal": "to get it done", "steps": list(steps or ("do it",)), **more})


def sound(events: list[dict[str, Any]]) -> None:
    """Check the invariants of an ended run."""
    durable = [each for each in events if "seq" in each]
    assert [each["seq"] for each in durable] == list(range(1, len(durable) + 1))
    assert [each["event"] in TERMINAL for each in durable].count(True) == 1
    assert durable[-1]["event"] in TERMINAL
    started = [e["node_id"] for e in durable if e["event"] == "workflow.node.started"]
    closed = [
        e["node_id"]
        for e in durable
        if e["event"] in ("workflow.node.completed", "workflow.node.failed")
    ]
    assert {node for node in started if not node.startswith("step:")} <= set(closed)
    calls = [e["node_id"] for e in durable if e["event"] == "workflow.tool.started"]
    results = [e["node_id"] for e in durable if e["event"] == "workflow.tool.completed"]
    assert set(calls) <= set(results)
    assert len(results) == len(set(results))


@asynccontextmanager
async def open_agent(
    home: Path,
    script: list[Reply] | Rules | Callable[[dict[str, Any]], Reply],
    environ: Mapping[str, str] | None = None,
    model: ScriptedServer | None = None,
    *,
    sleep: Sleep = asyncio.sleep,
    is_alone: bool = True,
) -> AsyncGenerator[Core]:
    """Start a gateway on a home folder; leaving the block hands over the active runs.

    `is_alone`: no other process executes runs of the database.
    """
    async with AsyncExitStack() as stack:
        server: ScriptedServer = (
            await stack.enter_async_context(ScriptedAnthropic(script)) if model is None else model
        )
        loaded = load(
            environ={
                "LARKSPUR_HOME": str(home),
                "ANTHROPIC_BASE_URL": server.base_url,
                "ANTHROPIC_API_KEY": "key-for-tests",
                "LARKSPUR_LLM__PROVIDER": "anthropic",
                "LARKSPUR_LLM__MODEL": "claude-x",
                "LARKSPUR_LLM__MAX_RETRIES": "0",
                "LARKSPUR_SANDBOX__PROVIDER": "native",
                **(environ or {}),
            }
        )
        url = loaded.settings.database.url.get_secret_value()
        if not is_postgres(url):
            write_new_database(database_path(url))
        services = await stack.enter_async_context(open_gateway(loaded, sleep=sleep))
        dispatch = services.dispatcher.run(services.coordinator, is_alone=is_alone)
        async with background_task(dispatch) as dispatching:
            yield Core(services, server)
            services.dispatcher.stop()
            await asyncio.wait([dispatching])
