"""Settings that people change through the API of a running gateway."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from internal.simulators.lark.simulator import LarkSim
from tests.support.anthropic_server import Reply, ScriptedAnthropic
from tests.support.gateway_command import larkspur
from tests.support.gateway_process import RunningGateway, running_gateway
from tests.support.http_client import HttpClient
from tests.support.lark_gateway import APP
from tests.support.model_site import model_server, model_site
from tests.support.openai_server import ScriptedOpenAI

KEY, CLAUDE_KEY = "sk-proj-" + "k3y" * 12, "sk-ant-" + "c1aud3" * 6
CHANGED = "The settings were changed."


async def changed(running: RunningGateway, method: str, path: str, body: object = None) -> Any:
    """Change a setting, wait until the gateway serves again, and return the response."""
    reply = await running.client.request(method, path, body)
    assert reply.status == 200, reply
    assert reply.json()["pending"]
    await running.logged(CHANGED)
    assert not (await running.client.get("/api/providers")).json()["pending"]
    return reply.json()


async def answer_of(client: HttpClient, text: str) -> str:
    made = await client.post("/api/tasks?wait=60", {"task": text})
    return str(made.json()["run"]["answer"])


def provider(view: Any, name: str) -> Any:
    return next(one for one in view["providers"] if one["name"] == name)


async def test_a_first_key_is_tried_stored_and_used_also_by_waiting_tasks(
    environ: dict[str, str], home: Path
) -> None:
    script = [Reply(text="Hello."), *[Reply(text="It works.")] * 3]
    async with ScriptedOpenAI(script, api_key=KEY) as model:
        environ |= {"OPENAI_BASE_URL": model.base_url, "LARKSPUR_AGENT__GATES": "off"}
        async with running_gateway(environ, home, provider="") as running:
            client = running.client
            waiting = (
                await client.post("/api/tasks?wait=60", {"task": "ask me a question"})
            ).json()
            view = (await client.get("/api/providers")).json()
            assert (view["default"], view["set_by"]) == ("offline:offline-demo", "")
            assert provider(view, "openai")["key"] == "missing"
            wrong = await client.post("/api/providers/openai/check", {"key": "sk-wrong-wrong"})
            assert wrong.json()["state"] == "fail"
            assert "key" in wrong.json()["sentence"]
            right = await client.post("/api/providers/openai/check", {"key": KEY})
            assert right.json()["state"] == "ok"
            assert not (home / "settings.json").exists()

            view = await changed(running, "PUT", "/api/providers/openai/key", {"key": KEY})
            assert view["default"] == "openai:gpt-6-sol"
            found = {key: provider(view, "openai")[key] for key in ("key", "key_origin")}
            assert found == {"key": "set", "key_origin": "stored"}
            assert (await client.get("/api/models")).json()["default"] == "openai:gpt-6-sol"
            assert await answer_of(client, "hello") == "It works."

            (question,) = (await client.get("/api/questions?status=open")).json()["questions"]
            given = {"decision": "text", "text": "blue"}
            path = f"/api/questions/{question['question_id']}/answer"
            assert (await client.post(path, given)).status == 200
            async with client.stream(f"session_id={waiting['session_id']}") as stream:
                final = (await stream.until("workflow.result.final"))[-1].json()
            assert final["payload"]["final_answer"] == "It works."

            view = await changed(
                running, "PUT", "/api/models/default", {"model": "openai:gpt-6-luna"}
            )
            assert await answer_of(client, "hello") == "It works."
            assert model.requests[-1]["model"] == "gpt-6-luna"
            view = await changed(running, "DELETE", "/api/providers/openai/key")
            assert view["default"] == "offline:offline-demo"
            assert (await answer_of(client, "what is 6*7?")).startswith("6*7 = 42")
            audit = (await client.get("/api/audit")).body
            assert audit.count(b"settings.changed") == 3
            assert KEY.encode() not in audit + (await client.get("/api/events")).body
    assert KEY.encode() not in await running.log.read()
    stored = home / "settings.json"
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    assert KEY not in stored.read_text(encoding="utf-8")


@pytest.mark.slow
async def test_what_the_environment_or_the_file_sets_is_not_changed(
    environ: dict[str, str], home: Path
) -> None:
    (home / "config.yaml").write_text("llm:\n  provider: anthropic\n", encoding="utf-8")
    async with ScriptedAnthropic([Reply(text="From Claude.")] * 2, api_key=CLAUDE_KEY) as model:
        environ |= {"ANTHROPIC_API_KEY": CLAUDE_KEY, "ANTHROPIC_BASE_URL": model.base_url}
        environ |= {"LARKSPUR_AGENT__GATES": "off"}
        async with running_gateway(environ, home, provider="") as running:
            client = running.client
            view = (await client.get("/api/providers")).json()
            assert view["set_by"].endswith("config.yaml:2")
            origin = provider(view, "anthropic")["key_origin"]
            assert origin == "environment ANTHROPIC_API_KEY"
            refused = await client.request(
                "PUT", "/api/models/default", {"model": "openai:gpt-6-sol"}
            )
            assert (refused.status, refused.error["code"]) == (409, "conflict")
            assert "config.yaml:2" in refused.error["message"]
            key = "/api/providers/anthropic/key"
            refused = await client.request("PUT", key, {"key": "sk-ant-another-one"})
            assert refused.status == 409
            assert "ANTHROPIC_API_KEY" in refused.error["message"]
            # the key of another provider is stored; nothing that runs uses it
            stored = await client.request("PUT", "/api/providers/openai/key", {"key": KEY})
            assert provider(stored.json(), "openai")["key_origin"] == "stored"
            assert stored.json()["default"] == "anthropic:claude-sonnet-5-5"
            assert (await client.post("/api/providers/anthropic/check", {})).json()["state"] == "ok"
            assert await answer_of(client, "hello") == "From Claude."


@pytest.mark.slow
async def test_unusable_settings_are_refused_and_nothing_is_stored(
    environ: dict[str, str], home: Path
) -> None:
    async with running_gateway(environ, home, provider="") as running:
        client = running.client
        app = {"app_id": "a", "app_secret": "b", "domain": "x"}
        for method, path, body, status, words in (
            ("PUT", "/api/providers/nobody/key", {"key": "sk-x"}, 404, "no provider nobody"),
            ("PUT", "/api/providers/openai/key", {"key": "two words"}, 400, "key"),
            ("PUT", "/api/providers/ollama/key", {"key": "sk-x"}, 400, "needs no key"),
            ("PUT", "/api/models/default", {"model": "gpt-6-sol"}, 404, "provider"),
            ("PUT", "/api/models/default", {"model": "openai:"}, 400, "provider:name"),
            ("PUT", "/api/models/default", {"model": "openai:gpt-6-sol"}, 400, "OPENAI_API_KEY"),
            ("PUT", "/api/channels/lark", app, 400, "domain"),
        ):
            reply = await client.request(method, path, body)
            assert reply.status == status, (path, reply)
            assert words in reply.error["message"]
        assert not (home / "settings.json").exists()
        (home / "settings.json").write_text("[", encoding="utf-8")
        (home / "settings.json").chmod(0o600)
        code, output = await larkspur(environ, home.parent, "models")
        assert (code, "settings.json is not a JSON object" in output) == (3, True), output


@pytest.mark.slow
async def test_a_lark_app_is_checked_connected_and_removed(
    environ: dict[str, str], home: Path
) -> None:
    async with LarkSim([APP]) as sim, running_gateway(environ, home) as running:
        client = running.client
        app = {"app_id": APP.app_id, "app_secret": APP.secret, "domain": sim.url}
        wrong = await client.post("/api/channels/lark/check", {**app, "app_secret": "wrong"})
        assert wrong.json()["findings"][0]["state"] == "fail"
        right = (await client.post("/api/channels/lark/check", app)).json()["findings"]
        assert "fail" not in {one["state"] for one in right}
        shown = (await client.get("/api/channels/lark")).json()
        assert (shown["enabled"], shown["app_id"]) == (False, "")

        view = await changed(running, "PUT", "/api/channels/lark", app)
        assert view == {
            "enabled": True,
            "app_id": APP.app_id,
            "domain": sim.url,
            "simulated": False,
            "set_by": "",
            "pending": True,
        }
        await sim.until(lambda _: bool(sim.lark.delivery.connections))
        assert json.loads((home / "settings.json").read_text())["channels"]["lark"]["enabled"]
        view = await changed(running, "DELETE", "/api/channels/lark")
        assert view["enabled"] is False
        await sim.until(lambda _: not sim.lark.delivery.connections)


@pytest.mark.slow
async def test_an_address_is_tried_stored_and_removed(environ: dict[str, str], home: Path) -> None:
    server = model_server("/v1", key=KEY, models=["gpt-6-sol", "m-1"])
    async with model_site(server) as site, running_gateway(environ, home, provider="") as running:
        client, path = running.client, "/api/providers/openai"
        entered = {"key": f"Bearer {KEY}", "base_url": f"<{site.origin}/v1/models>"}
        found = (await client.post(f"{path}/check", entered)).json()
        assert (found["state"], found["base_url"]) == ("fail", f"{site.origin}/v1")
        entered["base_url"] = found["base_url"]
        found = (await client.post(f"{path}/check", entered)).json()
        assert (found["state"], found["advice"]) == ("ok", "Left out around the key: “Bearer”.")
        other = {**entered, "model": "m-2"}
        assert (await client.post(f"{path}/check", other)).json()["state"] == "ok"
        nowhere = {"key": KEY, "base_url": "not one"}
        said = (await client.post(f"{path}/check", nowhere)).json()["sentence"]
        assert said == "“not one” is no address of a server, such as https://example.org/v1."
        assert not (home / "settings.json").exists()

        view = await changed(running, "PUT", f"{path}/key", entered)
        assert view["default"] == "openai:gpt-6-sol"
        assert provider(view, "openai")["base_url"] == f"{site.origin}/v1"
        assert provider(view, "openai")["address"] == "https://api.openai.com/v1"
        assert await answer_of(client, "hello") == "It works."
        listed = (await client.get(f"{path}/models")).json()
        assert listed["models"] == ["gpt-6-sol", "m-1"]
        refused = await client.request("PUT", f"{path}/key", {})
        assert (refused.status, "base_url" in refused.error["message"]) == (400, True)
        view = await changed(running, "PUT", f"{path}/key", {"base_url": ""})
        assert provider(view, "openai")["base_url"] == ""
        assert provider(view, "openai")["key_origin"] == "stored"
        assert site.keys == {f"Bearer {KEY}"}
    assert KEY.encode() not in await running.log.read()
