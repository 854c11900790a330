"""The plain model and the list of models, with the client library of OpenAI."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.anthropic_server import Fault, Reply, Rules, When
from tests.support.web_app import TOKEN
from tests.support.working_web_app import WorkingWebApp, open_working_web_app

if TYPE_CHECKING:
    from openai import AsyncOpenAI

PLAIN = "larkspur-plain"
SCRIPT = Rules(
    [
        Reply(
            text="A greeting",
            pieces=3,
            usage={"input_tokens": 100, "output_tokens": 20},
            when=When(last_user="title", model="claude-small"),
        ),
        Reply(text="held back", pieces=2, hold="slow", after_pieces=1, when=When(last_user="slow")),
        Reply(text="never", hang=True, when=When(last_user="hang")),
        Reply(text="cut", stop_reason="max_tokens", when=When(last_user="long")),
        Reply(
            fault=Fault("status", status=529, error="overloaded_error", message="Busy."),
            when=When(last_user="busy"),
        ),
        Reply(fault=Fault("status", status=400, message="Bad."), when=When(last_user="fail")),
    ]
)
SMALL = {"LARKSPUR_AGENT__TITLE_MODEL": "claude-small"}


@asynccontextmanager
async def opened(
    home: Path, environ: dict[str, str] = SMALL
) -> AsyncGenerator[tuple[WorkingWebApp, "AsyncOpenAI"]]:
    from openai import AsyncOpenAI  # noqa: PLC0415 - slow to import, and collected in every worker

    async with open_working_web_app(home, SCRIPT, environ) as app:
        url = f"http://127.0.0.1:{app.client.port}/v1"
        async with AsyncOpenAI(api_key=TOKEN, base_url=url, max_retries=0) as client:
            yield app, client


async def ask(client: "AsyncOpenAI", content: str, *, streams: bool) -> None:
    if streams:
        await client.chat.completions.create(model=PLAIN, messages=[user(content)], stream=True)
    else:
        await client.chat.completions.create(model=PLAIN, messages=[user(content)])


def user(content: Any) -> Any:
    return {"role": "user", "content": content}


async def test_a_plain_reply_is_one_request_without_a_run(home: Path) -> None:
    async with opened(home) as (app, client):
        conversation: list[Any] = [
            {"role": "system", "content": "Be short."},
            {"role": "assistant", "content": "Welcome."},
            user("hello"),
            user("Give it a title."),
        ]
        made = await client.chat.completions.create(
            model=PLAIN, messages=conversation, temperature=0.5, max_tokens=50
        )
        assert made.id.startswith("chatcmpl-plain-")
        assert made.choices[0].message.content == "A greeting"
        assert made.choices[0].finish_reason == "stop"
        assert made.usage is not None
        assert (made.usage.prompt_tokens, made.usage.completion_tokens) == (100, 20)
        (sent,) = app.core.model.requests
        assert (sent["model"], sent["max_tokens"]) == ("claude-small", 50)
        assert "tools" not in sent
        assert sent["system"][0]["text"] == "Be short."
        assert [each["role"] for each in sent["messages"]] == ["user", "assistant", "user"]
        assert (await app.client.get("/api/tasks")).json()["tasks"] == []
        assert (await app.client.get("/api/sessions")).json()["sessions"] == []


async def test_a_plain_reply_is_streamed_and_its_usage_counts(home: Path) -> None:
    async with opened(home) as (app, client):
        for _ in range(2):
            stream = await client.chat.completions.create(
                model=PLAIN,
                messages=[user("title")],
                stream=True,
                stream_options={"include_usage": True},
            )
            chunks = [chunk async for chunk in stream]
            pieces = [each.choices[0].delta.content or "" for each in chunks if each.choices]
            assert "".join(pieces) == "A greeting"
            assert chunks[-1].usage is not None
            assert chunks[-1].usage.total_tokens == 120
        days = (await app.client.get("/api/usage?by=day")).json()
        assert [each["usage"]["input_tokens"] for each in days["usage"]] == [200]
        assert (await app.client.get("/api/usage?by=session")).json()["usage"] == []


async def test_without_a_small_model_the_default_one_replies(home: Path) -> None:
    async with opened(home, {}) as (app, client):
        made = await client.chat.completions.create(model=PLAIN, messages=[user("long")])
        assert made.choices[0].finish_reason == "length"
        assert app.core.model.requests[0]["model"] == "claude-x"


@pytest.mark.parametrize("streams", [False, True])
async def test_a_client_that_leaves_ends_the_request(home: Path, *, streams: bool) -> None:
    async with opened(home) as (app, client):
        async with asyncio.TaskGroup() as tasks:
            request = tasks.create_task(ask(client, "hang", streams=streams))
            await app.core.model.until_open(1)
            request.cancel()
        await app.core.model.until_open(0)

        if streams:
            stream = await client.chat.completions.create(
                model=PLAIN, messages=[user("slow")], stream=True
            )
            await anext(stream)
            assert (await anext(stream)).choices[0].delta.content == "held "
            await stream.close()
            await app.core.model.until_open(0)


FAILURES = {"busy": (503, "model_busy"), "fail": (502, "model_rejected")}


async def test_failures_and_bad_requests_are_errors_with_a_sentence(home: Path) -> None:
    import openai  # noqa: PLC0415 - slow to import, and collected in every worker

    async with opened(home) as (_, client):
        for words, (status, code) in FAILURES.items():
            for streams in (False, True):
                with pytest.raises(openai.APIStatusError) as failed:
                    await client.chat.completions.create(
                        model=PLAIN, messages=[user(words)], stream=streams
                    )
                assert (failed.value.status_code, failed.value.code) == (status, code)
                assert failed.value.type == "server_error"
        picture = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
        bad: list[tuple[dict[str, Any], str]] = [
            ({"messages": [user(picture)]}, "reads text only"),
            ({"messages": [user(" ")]}, "no text"),
            ({"messages": [{"role": "assistant", "content": "hi"}]}, "last message"),
            ({"messages": [user("title")], "temperature": 3}, "between 0 and 2"),
            ({"messages": [user("title")], "max_tokens": 0}, "at least 1"),
        ]
        for fields, says in bad:
            with pytest.raises(openai.BadRequestError, match=says):
                await client.chat.completions.create(model=PLAIN, **fields)


async def test_models_are_found_by_name_and_unknown_paths_name_the_known_ones(home: Path) -> None:
    import openai  # noqa: PLC0415 - slow to import, and collected in every worker

    async with opened(home) as (_, client):
        listed = [model.id async for model in client.models.list()]
        assert listed[:2] == ["larkspur", PLAIN]
        assert (await client.models.retrieve(PLAIN)).id == PLAIN
        for name in ("gpt-9", "vendor/gpt-9"):
            with pytest.raises(openai.NotFoundError) as missing:
                await client.models.retrieve(name)
            assert missing.value.body == {
                "code": "not_found",
                "message": f"There is no model {name}. The models are: {', '.join(listed)}.",
                "type": "invalid_request_error",
                "param": None,
                "request_id": missing.value.request_id,
            }
        with pytest.raises(openai.NotFoundError, match="POST /v1/chat/completions") as missing:
            await client.embeddings.create(model="larkspur", input="hello")
        assert "/v1/embeddings does not exist" in missing.value.message
