"""Replacing the local token of a running gateway."""

import asyncio
import re
from pathlib import Path

import pytest

from internal.channels.cli.transports.http import HttpEndpoint
from internal.config.home import LocalToken
from tests.support.gateway_command import larkspur
from tests.support.gateway_process import running_gateway

LOST, WORKS_AGAIN = "background task failed", "works again"


def replace_token(home: Path, token: str, mode: int = 0o600) -> None:
    """Replace the token as an editor does."""
    draft = home / "token.new"
    draft.write_text(token)
    draft.chmod(mode)
    draft.replace(home / "token")


@pytest.mark.slow
async def test_a_replaced_token_is_valid_at_once_and_the_old_one_ends(
    environ: dict[str, str], home: Path
) -> None:
    async with running_gateway(environ, home) as running:
        client = running.client
        terminal = HttpEndpoint(f"http://{client.host}:{client.port}", LocalToken(home).read)
        assert terminal.request("GET", "/api/me").status == 200
        made = (await client.post("/api/tasks", {"task": "what is 6*7?"})).json()
        async with client.stream(f"session_id={made['session_id']}") as stream:
            await stream.until("workflow.result.final")
            new = "n3w-" * 16
            replace_token(home, new)
            assert (await client.get("/api/me")).status == 401
            async with asyncio.timeout(5):
                await stream.until("bye")
        by_new = {"authorization": f"Bearer {new}"}
        assert (await client.get("/api/me", by_new)).status == 200
        assert terminal.request("GET", "/api/me").status == 200
        code, output = await larkspur(environ, home.parent, "tasks")
        assert (code, "6*7" in output) == (0, True), output
        assert (await client.get("/health", by_new)).json()["status"] == "ok"


@pytest.mark.slow
async def test_an_unusable_token_ends_all_access_until_it_is_repaired(
    environ: dict[str, str], home: Path
) -> None:
    async with running_gateway(environ, home) as running:
        client, token = running.client, running.client.token

        async def expect_refusal(reason: str) -> None:
            for sent in (f"Bearer {token}", "Bearer ", "Bearer", "Bearer short"):
                reply = await client.get("/api/me", {"authorization": sent})
                assert (reply.status, reply.error["code"]) == (503, "token_unusable"), sent
                assert "larkspur doctor" in reply.error["message"]
            line = await running.logged(LOST)
            assert reason in line
            assert token not in line
            health = await client.get("/health")
            assert (health.status, health.json()) == (503, {"status": "degraded"})
            code, output = await larkspur(environ, home.parent, "doctor")
            assert code == 3
            assert re.search(f"fail +token: .*{reason}", output), output

        for broken, mode, reason in (
            ("", 0o600, "blank or malformed"),
            (token, 0o640, "accessible to other users"),
        ):
            replace_token(home, broken, mode)
            await expect_refusal(reason)
            replace_token(home, token)
            assert (await client.get("/api/me")).status == 200
            await running.logged(WORKS_AGAIN)
        (home / "token").chmod(0o644)
        await expect_refusal("accessible to other users")
        (home / "token").unlink()
        code, output = await larkspur(environ, home.parent, "doctor")
        assert (code, "There is no local token" in output) == (3, True), output
