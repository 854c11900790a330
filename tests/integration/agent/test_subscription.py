"""Subscriptions: every durable event once, in log order, from any cursor, at any speed."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import msgspec

from internal.agent.app.events.subscription import Cursor, StreamItem
from internal.agent.app.runs.creation import Submission, Submitted
from internal.agent.app.task_options import TaskOptions, build_run_spec
from internal.agent.domain.events.control import Connected, ReplayDone, StreamDropped, StreamReset
from internal.agent.domain.events.envelope import EventRecord
from internal.agent.domain.ids import SessionId
from internal.agent.domain.principals import LOCAL_OWNER
from internal.config.loader import load
from larkspur.services import TerminalServices, open_terminal
from tests.support.agent_app import Core, open_agent, plain_gateway
from tests.support.anthropic_server import Reply, Rules, When

LONG = "word " * 300_000
"""More text than a live buffer holds."""


async def watch(
    here: Core, session: SessionId | None = None, start: int | None = 0
) -> AsyncGenerator[list[StreamItem]]:
    """Watch item by item, so that items `until` did not read remain for the next call."""
    watched = None if session is None else frozenset({session})
    cursor = None if start is None else Cursor(here.services.broadcaster.epoch, start)
    async with aclosing(here.services.gateway.watch(watched, cursor)) as batches:
        async for batch in batches:
            for shown in batch:
                yield [shown]


async def until(batches: AsyncGenerator[list[StreamItem]], event: str) -> list[StreamItem]:
    """Read a stream up to the first event or control message of that name."""
    seen: list[StreamItem] = []
    async for batch in batches:
        for shown in batch:
            seen.append(shown)
            if (shown.event if isinstance(shown, EventRecord) else shown.name) == event:
                return seen
    raise AssertionError("the stream ended")


def positions(seen: list[StreamItem]) -> list[int]:
    return [shown.position for shown in seen if isinstance(shown, EventRecord) and shown.position]


async def test_a_late_subscriber_receives_the_text_so_far(home: Path) -> None:
    script = [Reply(text="one two three four", pieces=4, after_pieces=2, hold="rest")]
    async with open_agent(home, script) as here:
        made = await here.submit("count")
        async with aclosing(watch(here, made.session_id)) as early:
            await until(early, "workflow.node.output.delta")
            async with aclosing(watch(here, made.session_id)) as late:
                seen = await until(late, "partial")
                assert isinstance(seen[0], Connected)
                assert seen[0].active_run_id == made.run_id
                assert any(isinstance(shown, ReplayDone) for shown in seen)
                partial = seen[-1]
                assert isinstance(partial, EventRecord)
                payload = msgspec.json.decode(partial.json)["payload"]
                here.model.release("rest")
                rest = await until(late, "workflow.node.output.summary")
                words = [
                    msgspec.json.decode(shown.json)["payload"]["text"]
                    for shown in rest
                    if isinstance(shown, EventRecord)
                    and shown.event == "workflow.node.output.delta"
                ]
                assert payload["text"] + "".join(words) == "one two three four"


async def test_a_slow_subscriber_loses_no_durable_event(home: Path) -> None:
    script = [
        Reply(text=LONG, pieces=300),
        Reply(text="second"),
    ]
    async with open_agent(home, script) as here:
        made = await here.submit("talk a lot")
        async with aclosing(watch(here, made.session_id)) as slow:
            seen = await until(slow, "replay.done")
            await here.end_of(made)  # while the slow one does not read
            second = await here.submit("and again", made.session_id)
            await here.end_of(second)
            seen += await until(slow, "workflow.stream.dropped")
            dropped = seen[-1]
            assert isinstance(dropped, StreamDropped)
            assert positions(seen) == sorted(set(positions(seen)))
            stored = await here.durable(made) + await here.durable(second)
            assert len(positions(seen)) == len(stored)


async def test_an_invalid_cursor_resets_the_stream(home: Path) -> None:
    async with open_agent(home, [Reply(text="hello")]) as here:
        made = await here.submit("hi")
        await here.end_of(made)
        head = here.services.broadcaster.head
        for cursor, reason in (
            (Cursor("zzzzzz", 1), "unknown_epoch"),
            (Cursor(head.epoch, head.position + 1), "ahead_of_log"),
        ):
            async with aclosing(
                here.services.gateway.watch(frozenset({made.session_id}), cursor)
            ) as batches:
                seen = await until(batches, "workflow.result.final")
            assert isinstance(seen[1], StreamReset)
            assert seen[1].reason == reason
            assert positions(seen) == list(range(1, head.position + 1))


async def test_a_subscription_from_the_end_receives_only_new_events(home: Path) -> None:
    async with open_agent(home, [Reply(text="one"), Reply(text="two")]) as here:
        first = await here.submit("one")
        await here.end_of(first)
        async with aclosing(watch(here, None, None)) as everything:
            await until(everything, "replay.done")
            second = await here.submit("two")
            seen = await until(everything, "workflow.result.final")
            assert {shown.run_id for shown in seen if isinstance(shown, EventRecord)} == {
                second.run_id
            }


async def test_closing_the_broadcaster_ends_every_stream(home: Path) -> None:
    async with open_agent(home, []) as here:
        streams = [watch(here, None, None) for _ in range(3)]
        for stream in streams:
            await until(stream, "replay.done")
        ends = [asyncio.create_task(until(stream, "never")) for stream in streams]
        here.services.broadcaster.close()
        ended = [await asyncio.wait([end]) for end in ends]
        assert all(isinstance(next(iter(done)).exception(), AssertionError) for done, _ in ended)


async def test_the_gateway_delivers_events_of_a_terminal_in_order(home: Path) -> None:
    rules = Rules(
        [
            Reply(text="from the terminal", pieces=3, when=When(last_user="terminal")),
            Reply(text="from the gateway", pieces=3),
        ]
    )
    async with open_agent(home, rules) as here:
        environ = {
            "LARKSPUR_HOME": str(home),
            "ANTHROPIC_BASE_URL": here.model.base_url,
            "ANTHROPIC_API_KEY": "key-for-tests",
            "LARKSPUR_LLM__MODEL": "claude-x",
        }
        async with (
            open_terminal(load(environ=environ)) as terminal,
            aclosing(watch(here)) as everything,
        ):
            await until(everything, "replay.done")
            own = await in_terminal(here, terminal, "in the terminal")
            other = await here.submit("in the gateway")
            async with asyncio.TaskGroup() as both:
                both.create_task(terminal.dispatcher.execute(own.run_id, terminal.coordinator))
                both.create_task(here.end_of(other))
            seen = await until(everything, "workflow.result.final")
            seen += await until(everything, "workflow.result.final")
        assert positions(seen) == sorted(set(positions(seen)))
        for made in (own, other):
            stored = [each["event_id"] for each in await here.durable(made)]
            shown = [
                msgspec.json.decode(frame.json)["event_id"]
                for frame in seen
                if isinstance(frame, EventRecord) and frame.position and frame.run_id == made.run_id
            ]
            assert shown == stored


async def in_terminal(here: Core, terminal: TerminalServices, text: str) -> Submitted:
    submission = Submission(
        text,
        build_run_spec(terminal.defaults, TaskOptions(), LOCAL_OWNER),
        "cli",
        owner=terminal.leases.owner,
        lease_until=terminal.leases.expiry(),
    )
    return await plain_gateway(terminal).submit(submission, LOCAL_OWNER)


async def test_the_dispatcher_leaves_runs_of_a_terminal_alone(home: Path) -> None:
    async with open_agent(home, [Reply(text="mine"), Reply(text="the gateway's")]) as here:
        environ = {
            "LARKSPUR_HOME": str(home),
            "ANTHROPIC_BASE_URL": here.model.base_url,
            "ANTHROPIC_API_KEY": "key-for-tests",
            "LARKSPUR_LLM__MODEL": "claude-x",
        }
        async with open_terminal(load(environ=environ)) as terminal:
            own = await in_terminal(here, terminal, "mine")
            here.services.dispatcher.wake()
            other = await here.submit("another")
            await here.end_of(other)  # the gateway has looked at the queue
            assert (await here.run(own)).status == "queued"
            await terminal.dispatcher.execute(own.run_id, terminal.coordinator)
            run = await here.run(own)
            assert (run.status, run.owner) == ("completed", terminal.leases.owner)


async def test_ephemeral_events_do_not_move_the_cursor(home: Path) -> None:
    script = [Reply(text=LONG, pieces=300, after_pieces=1, hold="rest")]
    async with open_agent(home, script) as here:
        made = await here.submit("talk")
        async with aclosing(watch(here, made.session_id)) as slow:
            seen = await until(slow, "workflow.node.output.delta")
            here.model.release("rest")
            await here.end_of(made)  # while the slow one does not read, and falls off the tail
            seen += await until(slow, "workflow.stream.dropped")
        assert positions(seen) == sorted(set(positions(seen)))
        dropped = seen[-1]
        assert isinstance(dropped, StreamDropped)
        assert not dropped.since.endswith("-0")
