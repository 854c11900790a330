"""A completion that a client asks for again, with the client library of OpenAI and without it."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from internal.agent.app.runs.creation import Submitted
from internal.agent.domain.ids import TaskId
from internal.agent.domain.principals import LOCAL_OWNER
from internal.channels.web.services import WebServices
from tests.support.anthropic_server import Call, Fault, Reply, Rules, When
from tests.support.http_client import HttpClient, read_head
from tests.support.web_app import TOKEN
from tests.support.working_web_app import WorkingWebApp, open_working_web_app, serve_gateway

if TYPE_CHECKING:
    from openai import AsyncOpenAI

NO_GATES = {"LARKSPUR_AGENT__GATES": "off"}
PATH = "/v1/chat/completions"
SCRIPT = Rules(
    [
        Reply(fault=Fault("status", status=400, message="Bad."), when=When(last_user="fail")),
        Reply(
            text="First.",
            calls=[Call("list_files", {"path": "."})],
            when=When(last_user="two replies", results=0),
        ),
        Reply(
            text="Second one.",
            pieces=2,
            hold="second",
            after_pieces=1,
            when=When(last_user="two replies", results=1),
        ),
        Reply(text="after a while", hold="slow", when=When(last_user="slow")),
        Reply(
            calls=[Call("subagent", {"prompt": "dig"})],
            when=When(last_user="a garden", results=0),
        ),
        Reply(text="It grows.", when=When(last_user="a garden", results=1)),
        Reply(
            calls=[Call("request_user", {"question": "Here?"})],
            when=When(last_user="dig", results=0),
        ),
        Reply(
            calls=[Call("request_user", {"question": "With earth?"})],
            when=When(last_user="dig", results=1),
        ),
        Reply(text="Done.", when=When(last_user="dig", results=2)),
        Reply(text="fine"),
    ]
)


@asynccontextmanager
async def sdk(app: WorkingWebApp, **options: Any) -> AsyncGenerator["AsyncOpenAI"]:
    from openai import AsyncOpenAI  # noqa: PLC0415 - slow to import, and collected in every worker

    url = f"http://127.0.0.1:{app.client.port}/v1"
    async with AsyncOpenAI(api_key=TOKEN, base_url=url, **options) as client:
        yield client


def said(text: str) -> dict[str, Any]:
    return {"model": "larkspur", "messages": [{"role": "user", "content": text}]}


async def task_ids(app: WorkingWebApp) -> list[TaskId]:
    tasks = await app.core.services.gateway.queries.tasks(LOCAL_OWNER)
    return [task.id for task in tasks]


async def end_of(app: WorkingWebApp, task_id: TaskId) -> list[dict[str, Any]]:
    """Return the envelopes of the run of a task up to its end."""
    queries = app.core.services.gateway.queries
    task, run = await queries.task_with_run(task_id, LOCAL_OWNER)
    return await app.end_of(Submitted(task.id, run.id, task.session_id, "queued"))


@asynccontextmanager
async def asking(
    client: HttpClient, body: dict[str, Any], **headers: str
) -> AsyncGenerator[asyncio.StreamReader]:
    """Send a completion request whose connection is cut when the block is left."""
    reader, writer = await client.connect()
    content = json.dumps(body).encode()
    given = {"content-type": "application/json", "content-length": str(len(content)), **headers}
    try:
        writer.write(client.head("POST", PATH, given) + content)
        yield reader
    finally:
        writer.transport.abort()


async def readers_of(services: WebServices, task_id: TaskId, number: int) -> None:
    """Wait until so many clients wait for the answer of a task."""
    _, run = await services.gateway.queries.task_with_run(task_id, LOCAL_OWNER)
    async with asyncio.timeout(30):
        while services.readers.count(run.id) != number:  # noqa: ASYNC110 - nothing to wait on
            await asyncio.sleep(0)


async def test_a_failed_run_is_not_repeated(home: Path) -> None:
    import openai  # noqa: PLC0415 - slow to import, and collected in every worker

    async with open_working_web_app(home, SCRIPT) as app, sdk(app, max_retries=2) as client:
        with pytest.raises(openai.APIStatusError) as failed:
            await client.chat.completions.create(**said("fail"))
        assert failed.value.status_code == 502
        assert failed.value.response.headers["x-should-retry"] == "false"
        made = await task_ids(app)
        assert len(made) == 1
        # clients that look at the status alone
        again = await app.client.post(PATH, failed.value.request.content)
        assert (again.status, again.headers["x-should-retry"]) == (502, "false")
        assert "seconds ago and was not repeated." in again.json()["error"]["message"]
        assert "The same request" not in str(failed.value)
        assert await task_ids(app) == made


async def test_a_request_repeated_after_time_outs_is_one_run(home: Path) -> None:
    import openai  # noqa: PLC0415 - slow to import, and collected in every worker

    async with open_working_web_app(home, SCRIPT) as app:
        impatient = openai.Timeout(20.0, read=0.2)
        async with sdk(app, max_retries=2, timeout=impatient) as client:
            with pytest.raises(openai.APITimeoutError):
                await client.chat.completions.create(**said("slow"))
        await app.core.model.until_asked(1)
        made = await task_ids(app)
        assert len(made) == 1
        app.core.model.release("slow")
        async with sdk(app) as client:
            reply = await client.chat.completions.create(**said("slow"))
        assert reply.choices[0].message.content == "after a while"
        assert reply.model_extra is not None
        assert [reply.model_extra["larkspur"]["task_id"]] == await task_ids(app) == made


async def test_the_same_words_after_an_answer_are_another_task(home: Path) -> None:
    async with open_working_web_app(home, SCRIPT) as app, sdk(app) as client:
        first = await client.chat.completions.with_raw_response.create(**said("yes"))
        session = {"x-larkspur-session": first.headers["x-larkspur-session"]}
        for number in (2, 3):
            await client.chat.completions.create(**said("yes"), extra_headers=session)
            assert len(await task_ids(app)) == number
        # the answer was lost on its way, and the library says that it asks again
        counted = {**session, "x-stainless-retry-count": "1"}
        await client.chat.completions.create(**said("yes"), extra_headers=counted)
        assert len(await task_ids(app)) == 3


async def test_the_same_words_answer_each_question_of_a_subtask(home: Path) -> None:
    async with open_working_web_app(home, SCRIPT, NO_GATES) as app, sdk(app) as client:
        create = client.chat.completions.with_raw_response.create
        first = await create(**said("a garden"))
        session = {"x-larkspur-session": first.headers["x-larkspur-session"]}
        assert "Here?" in (first.parse().choices[0].message.content or "")
        second = await create(**said("yes"), extra_headers=session)
        assert "With earth?" in (second.parse().choices[0].message.content or "")
        third = await create(**said("yes"), extra_headers=session)
        assert third.parse().choices[0].message.content == "It grows."


async def test_the_same_words_at_the_same_time_are_two_tasks_until_a_reader_left(
    home: Path,
) -> None:
    async with open_working_web_app(home, SCRIPT) as app:
        async with asking(app.client, said("slow")):
            await app.core.model.until_open(1)
            async with asking(app.client, said("slow")):
                await app.core.model.until_open(2)
                made = await task_ids(app)
                assert len(made) == 2
        for task_id in made:
            await readers_of(app.services, task_id, 0)
        async with asking(
            app.client, said("slow"), **{"x-larkspur-session": "session-none"}
        ) as other:
            assert (await read_head(other))[0] == 404, "of another session"
        async with asking(app.client, said("slow")) as reader:
            await readers_of(app.services, made[0], 1)
            app.core.model.release("slow")
            status, headers = await read_head(reader)
            body = await reader.readexactly(int(headers["content-length"]))
        assert status == 200
        assert json.loads(body)["larkspur"]["task_id"] == made[0]
        assert await task_ids(app) == made


async def test_a_joined_stream_has_the_text_from_the_start(home: Path) -> None:
    async with open_working_web_app(home, SCRIPT) as app, sdk(app) as client:
        body = said("two replies")
        async with await client.chat.completions.create(**body, stream=True) as stream:
            text = ""
            async for chunk in stream:
                text += chunk.choices[0].delta.content or ""
                if "Second" in text:
                    break
        await readers_of(app.services, (await task_ids(app))[0], 0)
        joined = await client.chat.completions.create(**body, stream=True)
        text = ""
        async for chunk in joined:
            text += chunk.choices[0].delta.content or ""
            if "Second" in text:
                app.core.model.release("second")
        assert text == "First.\n\nSecond one."
        assert len(await task_ids(app)) == 1
        # after its end, as the library says that it asks again
        counted = {"x-stainless-retry-count": "2"}
        late = await client.chat.completions.create(**body, stream=True, extra_headers=counted)
        assert "".join([each.choices[0].delta.content or "" async for each in late]) == text
        assert len(await task_ids(app)) == 1


async def test_an_answer_that_nobody_read_is_joined_by_another_gateway_and_after_a_restart(
    home: Path,
) -> None:
    async with open_working_web_app(home, SCRIPT) as app:
        async with asking(app.client, said("slow")):
            await app.core.model.until_open(1)
        (made,) = await task_ids(app)
        async with serve_gateway(app.core, home) as (services, other):
            async with asking(other, said("slow")):
                await readers_of(services, made, 1)
            await readers_of(services, made, 0)
            app.core.model.release("slow")
            await end_of(app, made)
    async with open_working_web_app(home, Rules([Reply(text="another run")])) as app:
        reply = await app.client.post(PATH, json.dumps(said("slow")).encode())
        assert reply.json()["choices"][0]["message"]["content"] == "after a while"
        reply = await app.client.post(PATH, json.dumps(said("slow")).encode())
        assert reply.json()["choices"][0]["message"]["content"] == "another run"


@pytest.mark.first_rows(1)
@pytest.mark.parametrize("stream", [True, False])
async def test_closing_the_connection_stops_the_run_if_the_caller_asked_for_it(
    home: Path, *, stream: bool
) -> None:
    stop = {"x-larkspur-stop-on-disconnect": "true"}
    async with open_working_web_app(home, SCRIPT) as app:
        body = {**said("slow"), "stream": stream}
        async with asking(app.client, body, **stop):
            await app.core.model.until_open(1)
        (first,) = await task_ids(app)
        events = await end_of(app, first)
        assert events[-1]["event"] == "workflow.result.cancelled"
        async with asking(app.client, body):
            await app.core.model.until_open(1)
            assert len(await task_ids(app)) == 2, "a stopped run is not joined"
        bad = await app.client.post(PATH, body, {"x-larkspur-stop-on-disconnect": "yes"})
        assert (bad.status, "x-larkspur-stop-on-disconnect" in bad.error["message"]) == (400, True)


@pytest.mark.slow
async def test_a_waiting_client_of_tasks_can_ask_for_the_same(home: Path) -> None:
    async with open_working_web_app(home, SCRIPT) as app:
        _, writer = await app.client.connect()
        content = json.dumps({"task": "slow"}).encode()
        headers = {
            "content-type": "application/json",
            "content-length": str(len(content)),
            "x-larkspur-stop-on-disconnect": "true",
        }
        writer.write(app.client.head("POST", "/api/tasks?wait=60", headers) + content)
        await app.core.model.until_open(1)
        writer.transport.abort()
        (first,) = await task_ids(app)
        events = await end_of(app, first)
        assert events[-1]["event"] == "workflow.result.cancelled"
