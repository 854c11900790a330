"""Responses, with the client library of OpenAI."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.anthropic_server import Call, Fault, Reply, Rules, When
from tests.support.web_app import TOKEN
from tests.support.working_web_app import WorkingWebApp, open_working_web_app

if TYPE_CHECKING:
    from openai import AsyncOpenAI

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9Q"
    "DwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SCRIPT = Rules(
    [
        Reply(text="\n hello there\n", pieces=5, when=When(last_user="greet")),
        Reply(text="It was blue.", when=When(last_user="Which colour")),
        Reply(text="held back", pieces=2, hold="slow", after_pieces=1, when=When(last_user="slow")),
        Reply(
            text="First.",
            calls=[Call("list_files", {"path": "."})],
            when=When(last_user="two replies", results=0),
        ),
        Reply(text="Second.", when=When(last_user="two replies", results=1)),
        Reply(calls=[Call("shell", {"command": "touch a"})], when=When(last_user="ask", results=0)),
        Reply(text="Not then.", when=When(last_user="ask", results=1)),
        Reply(text="cut", stop_reason="max_tokens", when=When(last_user="long")),
        Reply(fault=Fault("status", status=400, message="Bad."), when=When(last_user="fail")),
    ]
)
BEGIN = ["response.created", "response.in_progress"]
MESSAGE = ["response.output_item.added", "response.content_part.added"]
DONE = [
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
]


@asynccontextmanager
async def opened(home: Path) -> AsyncGenerator[tuple[WorkingWebApp, "AsyncOpenAI"]]:
    from openai import AsyncOpenAI  # noqa: PLC0415 - slow to import, and collected in every worker

    async with open_working_web_app(home, SCRIPT, {"LARKSPUR_AGENT__GATES": "off"}) as app:
        url = f"http://127.0.0.1:{app.client.port}/v1"
        async with AsyncOpenAI(api_key=TOKEN, base_url=url, max_retries=0) as client:
            yield app, client


async def events_of(client: "AsyncOpenAI", **fields: Any) -> list[Any]:
    """Return the events of a streamed response, each checked by the type of the library."""
    from openai.types.responses import ResponseStreamEvent  # noqa: PLC0415 - slow to import
    from pydantic import TypeAdapter  # noqa: PLC0415 - slow to import

    adapter: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    stream = await client.responses.create(**{"model": "larkspur", "stream": True, **fields})
    events = [event async for event in stream]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    return [adapter.validate_json(event.model_dump_json(), strict=True) for event in events]


async def test_a_response_is_the_answer_of_a_task(home: Path) -> None:
    from openai.types.responses import Response  # noqa: PLC0415 - slow to import

    async with opened(home) as (app, client):
        made = await client.responses.create(
            model="larkspur",
            instructions="Be kind.",
            input="greet me",
            temperature=0.2,
            store=False,
            include=["reasoning.encrypted_content"],
            tools=[{"type": "function", "name": "f", "parameters": {}, "strict": True}],
            metadata={"a": "b"},
            extra_body={"previous_response_id": None, "client_metadata": {"x": "y"}},
        )
        Response.model_validate_json(made.model_dump_json(), strict=True)
        assert (made.status, made.output_text, made.metadata) == (
            "completed",
            "hello there",
            {"a": "b"},
        )
        assert made.usage is not None
        assert made.usage.total_tokens == made.usage.input_tokens + made.usage.output_tokens > 0
        assert made.model_extra is not None
        ids = made.model_extra["larkspur"]
        assert made.id == f"resp_{ids['run_id']}"
        task = (await app.client.get(f"/api/tasks/{ids['task_id']}")).json()
        assert task["run"]["answer"] == "hello there"
        assert "Be kind." in str(app.core.model.requests[-1])

        shown = await client.responses.retrieve(made.id)
        assert (shown.status, shown.output_text, shown.id) == (
            "completed",
            "hello there",
            made.id,
        )
        assert shown.output[0].id == made.output[0].id


async def test_a_stream_has_the_events_of_the_api_and_each_text_once(home: Path) -> None:
    async with opened(home) as (_, client):
        events = await events_of(client, input="greet me")
        names = [event.type for event in events]
        deltas = [each for each in events if each.type == "response.output_text.delta"]
        assert names == [*BEGIN, *MESSAGE, *["response.output_text.delta"] * len(deltas), *DONE]
        assert "".join(each.delta for each in deltas).rstrip() == "hello there"
        assert events[-1].response.output_text.rstrip() == "hello there"
        assert events[-1].response.usage.output_tokens > 0

        async with client.responses.stream(model="larkspur", input="two replies") as stream:
            text = "".join(
                [each.delta async for each in stream if each.type == "response.output_text.delta"]
            )
            final = await stream.get_final_response()
        assert text == final.output_text == "First.\n\nSecond."


async def test_a_response_is_continued_with_its_id(home: Path) -> None:
    import openai  # noqa: PLC0415 - slow to import, and collected in every worker

    async with opened(home) as (app, client):
        raw = await client.responses.with_raw_response.create(model="larkspur", input="greet me")
        session, first = raw.headers["x-larkspur-session"], raw.parse()
        second = await client.responses.create(
            model="larkspur", input="greet me again", previous_response_id=first.id
        )
        assert second.previous_response_id == first.id
        tasks = (await app.client.get(f"/api/tasks?session_id={session}")).json()["tasks"]
        assert [task["task"] for task in tasks] == ["greet me again", "greet me"]

        for name in ("resp_run-none", "msg_x", "resp_plain-2abc"):
            with pytest.raises(openai.NotFoundError, match=name) as missing:
                await client.responses.create(
                    model="larkspur", input="hi", previous_response_id=name
                )
            assert missing.value.code == "previous_response_not_found"
        with pytest.raises(openai.NotFoundError, match="no response resp_none"):
            await client.responses.retrieve("resp_none")
        other = await client.responses.create(model="larkspur", input="greet me")
        with pytest.raises(openai.BadRequestError, match="names another session"):
            await client.responses.create(
                model="larkspur",
                input="hi",
                previous_response_id=other.id,
                extra_headers={"x-larkspur-session": session},
            )


async def test_items_of_a_conversation_are_read(home: Path) -> None:
    async with opened(home) as (app, client):
        image = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}
        items: list[Any] = [
            {"role": "developer", "content": "Be kind."},
            {"role": "user", "content": "The sky was blue."},
            {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "Hm."}]},
            {"type": "function_call", "call_id": "c", "name": "look", "arguments": '{"at": "sky"}'},
            {"type": "function_call_output", "call_id": "c", "output": "a cloud"},
            {
                "type": "message",
                "role": "assistant",
                "id": "msg_1",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Noted.", "annotations": []}],
            },
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "Which colour was it?"}, image],
            },
        ]
        made = await client.responses.create(model="larkspur", input=items)
        assert made.output_text == "It was blue."
        sent = str(app.core.model.requests[-1])
        for said in ("Be kind.", "sky was blue", "look", "a cloud", "Noted."):
            assert said in sent, said
        assert "Hm." not in sent
        assert made.model_extra is not None
        task = (
            await app.client.get(f"/api/tasks/{made.model_extra['larkspur']['task_id']}")
        ).json()
        assert [each["name"] for each in task["attachments"]] == ["image-1.png"]


async def test_a_message_that_is_referred_to_names_its_session(home: Path) -> None:
    async with opened(home) as (app, client):
        first = await client.responses.create(model="larkspur", input="ask")
        items: list[Any] = [
            {"role": "developer", "content": "Be kind."},
            {"role": "user", "content": "ask"},
            {"type": "item_reference", "id": first.output[0].id},
            {"role": "user", "content": "no"},
        ]
        second = await client.responses.create(model="larkspur", input=items)
        assert second.id == first.id  # the answer to its question goes on with the run
        items += [
            {"type": "item_reference", "id": second.output[0].id},
            {"role": "user", "content": "greet me"},
        ]
        third = await client.responses.create(model="larkspur", input=items)
        assert first.model_extra is not None
        assert third.model_extra is not None
        session = first.model_extra["larkspur"]["session_id"]
        assert third.model_extra["larkspur"]["session_id"] == session
        assert "Be kind." in str(app.core.model.requests[-1])


async def test_a_response_is_continued_twice_in_two_sessions(home: Path) -> None:
    async with opened(home) as (_, client):
        first = await client.responses.create(model="larkspur", input="greet me")
        sessions = []
        for _ in range(2):
            made = await client.responses.create(
                model="larkspur", input="greet me again", previous_response_id=first.id
            )
            assert made.model_extra is not None
            sessions.append(made.model_extra["larkspur"]["session_id"])
        assert first.model_extra is not None
        assert sessions[0] == first.model_extra["larkspur"]["session_id"] != sessions[1]


async def test_a_question_is_an_answer_and_a_failure_an_error(home: Path) -> None:
    import openai  # noqa: PLC0415 - slow to import, and collected in every worker

    async with opened(home) as (app, client):
        events = await events_of(client, input="ask")
        assert events[-1].type == "response.completed"
        assert "Run `touch a`?" in events[-1].response.output_text

        events = await events_of(client, input="fail")
        assert [event.type for event in events] == [*BEGIN, "response.failed"]
        failed = events[-1].response
        assert failed.status == "failed"
        assert "Bad." in failed.error.message
        assert (await client.responses.retrieve(failed.id)).error == failed.error
        with pytest.raises(openai.InternalServerError, match="Bad"):
            await client.with_options(max_retries=2).responses.create(
                model="larkspur", input="fail"
            )
        tasks = (await app.client.get("/api/tasks")).json()["tasks"]
        assert [task["task"] for task in tasks] == ["fail", "fail", "ask"]


async def test_a_client_that_leaves_does_not_stop_the_run(home: Path) -> None:
    async with opened(home) as (app, client):
        stream = await client.responses.create(model="larkspur", input="slow", stream=True)
        created = await anext(stream)
        assert created.type == "response.created"
        name = created.response.id
        while (await anext(stream)).type != "response.output_text.delta":
            pass
        await stream.close()
        assert (await client.responses.retrieve(name)).status == "in_progress"
        app.core.model.release("slow")
        run = (await client.responses.retrieve(name)).model_extra
        assert run is not None
        await app.core.until(
            run["larkspur"]["session_id"], lambda each: each["event"] == "workflow.result.final"
        )
        assert (await client.responses.retrieve(name)).output_text == "held back"


async def test_the_plain_model_responds_without_a_run(home: Path) -> None:
    async with opened(home) as (app, client):
        made = await client.responses.create(
            model="larkspur-plain", input="greet", instructions="Be short.", max_output_tokens=9
        )
        assert made.output_text.strip() == "hello there"
        assert app.core.model.requests[-1]["max_tokens"] == 9
        assert app.core.model.requests[-1]["system"][0]["text"] == "Be short."
        events = await events_of(client, model="larkspur-plain", input="long")
        assert events[-1].type == "response.incomplete"
        assert events[-1].response.incomplete_details.reason == "max_output_tokens"
        assert (await app.client.get("/api/tasks")).json()["tasks"] == []


SCHEMA = {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}}
BAD: list[tuple[dict[str, Any], str]] = [
    ({"background": True}, "background is not supported"),
    ({"conversation": "conv_1"}, "conversation is not supported"),
    ({"text": SCHEMA}, "text.format is not supported"),
    ({"tool_choice": "required"}, "tool_choice demands a call of a tool"),
    ({"prompt": {"id": "pmpt_1"}}, "prompt is not supported"),
    ({"include": ["message.output_text.logprobs"]}, "message.output_text.logprobs"),
    ({"input": []}, "input"),
    ({"input": [{"role": "assistant", "content": "hi"}]}, "last message must be one of the user"),
    ({"input": [{"role": "robot", "content": "hi"}]}, r"input\[0\].role"),
    (
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]},
        "type input_file, or it lacks its data",
    ),
    (
        {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]},
        "type input_image, or it lacks its data",
    ),
]


async def test_what_is_not_there_is_refused_by_name(home: Path) -> None:
    import openai  # noqa: PLC0415 - slow to import, and collected in every worker

    async with opened(home) as (_, client):
        for fields, says in BAD:
            with pytest.raises(openai.BadRequestError, match=says):
                await client.responses.create(**{"model": "larkspur", "input": "hi", **fields})
        with pytest.raises(openai.NotFoundError, match="no model gpt-9"):
            await client.responses.create(model="gpt-9", input="hi")
