"""Chat completions, with the client library of OpenAI."""

import asyncio
import base64
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from internal.agent.domain.ids import SessionId
from tests.support.anthropic_server import Call, Fault, Reply, Rules, When
from tests.support.web_app import TOKEN
from tests.support.working_web_app import WorkingWebApp, open_working_web_app

if TYPE_CHECKING:
    from openai import AsyncOpenAI

PIXEL = base64.b64encode(
    base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
).decode()
SCRIPT = Rules(
    [
        Reply(text="hello there", when=When(last_user="greet")),
        Reply(text="It was blue.", when=When(last_user="Which colour")),
        Reply(text="held back", pieces=2, hold="slow", after_pieces=1, when=When(last_user="slow")),
        Reply(
            text="First.",
            calls=[Call("list_files", {"path": "."})],
            when=When(last_user="two replies", results=0),
        ),
        Reply(text="Second.", when=When(last_user="two replies", results=1)),
        Reply(calls=[Call("shell", {"command": "touch a"})], when=When(last_user="ask")),
        Reply(text="\n\n Blanks\n", pieces=4, when=When(last_user="around")),
        Reply(fault=Fault("status", status=400, message="Bad."), when=When(last_user="fail")),
    ]
)


@asynccontextmanager
async def opened(home: Path) -> AsyncGenerator[tuple[WorkingWebApp, "AsyncOpenAI"]]:
    from openai import AsyncOpenAI  # noqa: PLC0415 - slow to import, and collected in every worker

    async with open_working_web_app(home, SCRIPT) as app:
        url = f"http://127.0.0.1:{app.client.port}/v1"
        async with AsyncOpenAI(api_key=TOKEN, base_url=url, max_retries=0) as client:
            yield app, client


def user(content: Any) -> Any:
    return {"role": "user", "content": content}


async def test_a_completion_is_the_answer_of_a_task(home: Path) -> None:
    async with opened(home) as (app, client):
        assert (await client.models.list()).data[0].id == "larkspur"
        made = await client.chat.completions.create(
            model="larkspur",
            messages=[user("greet me")],
            temperature=0.2,
            extra_body={"stream": None, "tools": None, "stop": None},  # as some clients do
        )
        assert made.choices[0].message.content == "hello there"
        assert made.choices[0].finish_reason == "stop"
        assert made.usage is not None
        assert (
            made.usage.total_tokens == made.usage.prompt_tokens + made.usage.completion_tokens > 0
        )
        assert made.model_extra is not None
        task = made.model_extra["larkspur"]
        reply = await app.client.get(f"/api/tasks/{task['task_id']}")
        assert reply.json()["run"]["answer"] == "hello there"


async def test_a_session_keeps_the_conversation_and_without_one_it_is_sent(home: Path) -> None:
    async with opened(home) as (app, client):
        before = [user("The sky was blue."), {"role": "assistant", "content": "Noted."}]
        made = await client.chat.completions.create(
            model="larkspur", messages=[*before, user("Which colour was it?")]
        )
        assert made.choices[0].message.content == "It was blue."
        sent = str(app.core.model.requests[-1])
        assert "user: The sky was blue." in sent
        assert "assistant: Noted." in sent

        raw = await client.chat.completions.with_raw_response.create(
            model="larkspur", messages=[user("greet me")]
        )
        session = raw.headers["x-larkspur-session"]
        await client.chat.completions.create(
            model="larkspur",
            messages=[user("ignored"), user("greet me again")],
            extra_headers={"x-larkspur-session": session},
        )
        tasks = (await app.client.get(f"/api/tasks?session_id={session}")).json()["tasks"]
        assert [task["task"] for task in tasks] == ["greet me again", "greet me"]


async def test_a_stream_has_the_text_of_all_replies_and_the_usage(home: Path) -> None:
    async with opened(home) as (_, client):
        stream = await client.chat.completions.create(
            model="larkspur",
            messages=[user("two replies, please")],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
        text = "".join(each.choices[0].delta.content or "" for each in chunks if each.choices)
        assert text == "First.\n\nSecond."
        assert [each.choices[0].finish_reason for each in chunks if each.choices][-1] == "stop"
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.completion_tokens > 0


async def test_a_text_with_blanks_around_it_is_streamed_once(home: Path) -> None:
    async with opened(home) as (_, client):
        stream = await client.chat.completions.create(
            model="larkspur", messages=[user("around")], stream=True
        )
        text = "".join([each.choices[0].delta.content or "" async for each in stream])
        assert text.rstrip() == "Blanks"


async def test_a_stream_is_live_and_its_client_may_leave(home: Path) -> None:
    async with opened(home) as (app, client):
        raw = await client.chat.completions.with_raw_response.create(
            model="larkspur", messages=[user("slow")], stream=True
        )
        stream = raw.parse()
        assert (await anext(stream)).choices[0].delta.role == "assistant"
        assert (await anext(stream)).choices[0].delta.content == "held "
        await stream.close()
        app.core.model.release("slow")
        session = SessionId(raw.headers["x-larkspur-session"])
        events = await app.core.until(
            session, lambda event: event["event"] == "workflow.result.final"
        )
        assert events[-1]["payload"]["final_answer"] == "held back"


async def test_a_question_is_named_and_a_failure_is_an_error(home: Path) -> None:
    import openai  # noqa: PLC0415 - slow to import, and collected in every worker

    async with opened(home) as (_, client):
        made = await client.chat.completions.create(model="larkspur", messages=[user("ask")])
        content = made.choices[0].message.content
        assert content is not None
        assert "Run `touch a`?" in content
        assert "Reply yes to allow it, or no." in content
        assert "on the page or with: larkspur answer question-" in content
        with pytest.raises(openai.APIStatusError) as failed:
            await client.chat.completions.create(model="larkspur", messages=[user("fail")])
        assert failed.value.status_code == 502
        stream = await client.chat.completions.create(
            model="larkspur", messages=[user("fail")], stream=True
        )
        with pytest.raises(openai.APIError):
            async for _ in stream:
                pass


async def test_images_are_attached(home: Path) -> None:
    async with opened(home) as (app, client):
        parts = [
            {"type": "text", "text": "greet me"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
        ]
        made = await client.chat.completions.create(model="larkspur", messages=[user(parts)])
        assert made.model_extra is not None
        task_id = made.model_extra["larkspur"]["task_id"]
        task = (await app.client.get(f"/api/tasks/{task_id}")).json()
        assert [each["name"] for each in task["attachments"]] == ["image-1.png"]


BAD: dict[str, tuple[dict[str, Any], int, str]] = {
    "a model that does not exist": ({"model": "gpt-9", "messages": [user("hi")]}, 404, "larkspur"),
    "a tool that must be called": (
        {
            "model": "larkspur",
            "messages": [user("hi")],
            "tools": [{"type": "function"}],
            "tool_choice": "required",
        },
        400,
        "/mcp",
    ),
    "a certain tool": (
        {"messages": [user("hi")], "tool_choice": {"type": "function", "function": {"name": "f"}}},
        400,
        "the tool f",
    ),
    "a function": ({"messages": [user("hi")], "function_call": {"name": "f"}}, 400, "/mcp"),
    "a role": ({"messages": [{"role": "critic", "content": "hi"}]}, 400, "'critic'"),
    "a part": ({"messages": [user([{"type": "video_url", "video_url": "x"}])]}, 400, "video_url"),
    "a part without data": (
        {"messages": [user([{"type": "file", "file": {"file_id": "file-1"}}])]},
        400,
        "type file",
    ),
    "long instructions": (
        {"messages": [{"role": "system", "content": "a" * 40_000}, user("hi")]},
        400,
        "40,000 bytes",
    ),
    "no message": ({"model": "larkspur", "messages": []}, 400, "messages"),
    "a last message of the assistant": (
        {"model": "larkspur", "messages": [{"role": "assistant", "content": "hi"}]},
        400,
        "last message",
    ),
    "an address of an image": (
        {
            "model": "larkspur",
            "messages": [
                user([{"type": "image_url", "image_url": {"url": "http://127.0.0.1/a.png"}}])
            ],
        },
        400,
        "data URL",
    ),
    "broken base64": (
        {
            "model": "larkspur",
            "messages": [
                user([{"type": "image_url", "image_url": {"url": "data:image/png;base64,a$"}}])
            ],
        },
        400,
        "image 1 is not valid base64",
    ),
}


async def test_bad_requests_get_a_sentence(home: Path) -> None:
    import openai  # noqa: PLC0415 - slow to import, and collected in every worker
    from openai import AsyncOpenAI  # noqa: PLC0415 - slow to import, and collected in every worker

    async with opened(home) as (app, _):
        for name, (body, status, says) in BAD.items():
            reply = await app.client.post("/v1/chat/completions", body)
            assert (reply.status, says in reply.error["message"]) == (status, True), name
        reply = await app.client.request(
            "POST",
            "/v1/chat/completions",
            b'{"messages": [{"role": "user", "content": "hi"}]}',
            {"content-type": "application/json", "x-larkspur-session": "session-none"},
        )
        assert reply.status == 404
        wrong = AsyncOpenAI(
            api_key="wrong", base_url=f"http://127.0.0.1:{app.client.port}/v1", max_retries=0
        )
        async with wrong:
            with pytest.raises(openai.AuthenticationError):
                await wrong.models.list()


async def test_a_repeated_key_creates_one_task(home: Path) -> None:
    async with opened(home) as (_, client):

        async def create() -> str:
            made = await client.chat.completions.create(
                model="larkspur",
                messages=[user("greet me")],
                extra_headers={"idempotency-key": "one"},
            )
            assert made.model_extra is not None
            return str(made.model_extra["larkspur"]["task_id"])

        async with asyncio.TaskGroup() as tasks:
            first, second = (tasks.create_task(create()) for _ in range(2))
        assert first.result() == second.result()
