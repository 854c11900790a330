"""`larkspur hooks`, with real receivers and real programs."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from standardwebhooks import Webhook

from internal.channels.cli.exit_codes import FAILED, OK, USAGE
from internal.hooks.signature import make_secret, suits_libraries
from tests.support.command_runner import CommandResult, CommandRunner
from tests.support.hook_server import HookServer

SECRET = make_secret()
GUARD = "import json, sys; given = json.load(sys.stdin); assert given['test'] is True; "


@asynccontextmanager
async def receiving(
    environ: dict[str, str], *answers: tuple[int, bytes], key: str = SECRET
) -> AsyncGenerator[HookServer]:
    """A receiver that is the only webhook of the settings."""
    async with HookServer(*answers) as server:
        webhook = {"url": server.url, "secret": key, "events": ["*"], "timeout_seconds": 0.5}
        environ["LARKSPUR_WEBHOOKS"] = json.dumps([webhook])
        yield server


async def tested(run: CommandRunner, *argv: str) -> CommandResult:
    return await anyio.to_thread.run_sync(partial(run, "hooks", "test", *argv))


def has_hook(environ: dict[str, str], code: str, event: str = "before_tool", **more: Any) -> None:
    command = [sys.executable, "-c", GUARD + code]
    hook = {"event": event, "name": "guard", "command": command, **more}
    environ["LARKSPUR_HOOKS"] = json.dumps([hook])


async def test_a_webhook_gets_a_signed_test_event(
    run: CommandRunner, environ: dict[str, str]
) -> None:
    async with receiving(environ) as server:
        result = await tested(run)
        [request] = server.requests
        assert result.code == OK
        assert "accepted the test event with the status 200 in" in result.out
        event = Webhook(SECRET).verify(request.body, request.headers)
        assert (event["event"], event["event_id"]) == (
            "webhook.test",
            request.headers["webhook-id"],
        )
        [trial] = (await tested(run, "--json")).json
        assert (trial["outcome"], trial["status"]) == ("accepted", 200)


@pytest.mark.first_rows(1)
@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (401, b"no matching signature", "It says: “no matching signature”. Does the receiver have"),
        (404, b"", "Is the path of its url right"),
        (422, b"", "given up after three attempts"),
        (302, b"", "Only a status from 200 to 299"),
        (520, b"\x1b[31m" * 99, "sent again until it accepts them"),
        (0, b"", "it did not answer within 0.5 s"),
    ],
)
async def test_a_failure_is_told_with_its_reason(
    run: CommandRunner, environ: dict[str, str], status: int, body: bytes, sentence: str
) -> None:
    async with receiving(environ, (status, body)):
        result = await tested(run)
    assert (result.code, sentence in result.out) == (FAILED, True), result.out
    assert "\x1b" not in result.out


async def test_a_receiver_that_is_not_there_is_told(
    run: CommandRunner, environ: dict[str, str]
) -> None:
    async with receiving(environ, key="s3cret"):
        pass
    result = await tested(run)
    assert result.code == FAILED
    assert "it cannot be reached: Connection refused" in result.out
    assert "its secret is not valid Base64" in result.out


@pytest.mark.first_rows(2)
@pytest.mark.parametrize(
    ("code", "event", "sentence", "exit_code"),
    [
        ("pass", "before_tool", "lets the example pass", OK),
        ("sys.exit('no')", "before_tool", "it ended with exit code 1: no", FAILED),
        ("sys.stderr.write('no'); sys.exit(2)", "before_tool", "refuses the example", OK),
        ("print('{\"continue\": 1}')", "before_tool", "it answered JSON that cannot", FAILED),
        ("print(given['prompt'])", "message_received", "something else than one JSON", FAILED),
        ("given['prompt'], given['cwd']", "run_started", "lets the example pass", OK),
        ("given['tool_response']['text']", "after_tool", "lets the example pass", OK),
        ("given['question']['id']", "question_asked", "lets the example pass", OK),
        ("given['result']['answer']", "run_ended", "lets the example pass", OK),
    ],
)
async def test_a_hook_is_asked_about_an_example_only_by_its_name(
    run: CommandRunner,
    environ: dict[str, str],
    tmp_path: Path,
    code: str,
    event: str,
    sentence: str,
    exit_code: int,
) -> None:
    mark = tmp_path / "asked"
    has_hook(environ, f"open({str(mark)!r}, 'w'); {code}", event)
    unnamed = await tested(run)
    assert (unnamed.code, mark.exists()) == (OK, False)
    assert "larkspur hooks test NAME, with one of guard" in unnamed.err
    result = await tested(run, "guard")
    assert (result.code, mark.exists()) == (exit_code, True)
    assert sentence in result.out


async def test_an_example_is_of_the_tool_that_a_hook_matches(
    run: CommandRunner, environ: dict[str, str]
) -> None:
    has_hook(environ, "sys.stderr.write(given['tool_name']); sys.exit(2)", match="mcp__github")
    assert "It says: “mcp__github”." in (await tested(run, "guard")).out


def test_hooks_are_listed_and_unknown_names_are_refused(
    run: CommandRunner, environ: dict[str, str]
) -> None:
    assert "no hooks and webhooks" in run("hooks").err
    nothing = run("hooks", "test", "other")
    assert (nothing.code, "no hooks and webhooks" in nothing.err) == (USAGE, True)
    webhook = {"url": "https://a.example/x?key=canary", "secret": "s3cret", "events": ["*"]}
    environ["LARKSPUR_WEBHOOKS"] = json.dumps([webhook])
    has_hook(environ, "pass")
    listed = run("hooks")
    assert [line.split() for line in listed.out.splitlines()] == [
        ["a.example", "webhook", "*"],
        ["guard", "hook", "before_tool"],
    ]
    assert "a.example: its secret is not valid Base64" in listed.err
    assert "canary" not in listed.out + listed.err
    assert [each["suits_libraries"] for each in run("hooks", "--json").json] == [False, True]
    unknown = run("hooks", "test", "other")
    assert (unknown.code, "a.example, guard" in unknown.message) == (USAGE, True)
    assert run("hooks", "secret", "other").code == USAGE


def test_a_secret_is_made_that_libraries_take(run: CommandRunner) -> None:
    secret = run("hooks", "secret").out.strip()
    assert secret.startswith("whsec_")
    assert suits_libraries(secret)
    assert run("hooks", "secret", "--json").json["secret"] != secret
