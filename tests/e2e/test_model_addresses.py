"""`larkspur doctor`, `larkspur models list` and a run as real processes, with wrong addresses."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from internal.llm.addresses.variants import wire_format
from internal.model_providers.registry import PROVIDERS, Provider
from tests.support.gateway_process import LARKSPUR
from tests.support.model_site import ModelSite, SiteAnswer, model_server, model_site, page
from tests.support.openai_server import ScriptedOpenAI
from tests.support.ports import free_port
from tests.support.scripted_model import Reply

KEY = "Canary-5e0b77aa-00-key"
REMOTE = [one for one in PROVIDERS if wire_format(one) and one.key_variable]


async def larkspur(environ: Mapping[str, str], *argv: str) -> tuple[int, str]:
    """Run a command; return its exit code and its whole output."""
    process = await asyncio.create_subprocess_exec(
        str(LARKSPUR),
        *argv,
        env=environ,
        cwd=Path(environ["LARKSPUR_HOME"]).parent,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert KEY not in output.decode()
    return process.returncode or 0, output.decode()


async def doctor(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the check of the model."""
    code, output = await larkspur(environ, "doctor", "--json")
    checks = [one for one in json.loads(output) if one["name"] == "model"]
    assert len(checks) == 1
    assert code == (3 if checks[0]["state"] == "fail" else 0)
    assert "\n" not in checks[0]["sentence"]
    return dict(checks[0])


def settings_of(provider: Provider, site: ModelSite, key: str) -> dict[str, str]:
    prefix = "/v1" if wire_format(provider) == "openai" else ""
    return {
        "LARKSPUR_LLM__PROVIDER": provider.name,
        "LARKSPUR_LLM__BASE_URL": f"{site.origin}{prefix}",
        str(provider.key_variable): key,
    }


@pytest.mark.slow
@pytest.mark.parametrize("provider", REMOTE, ids=lambda one: one.name)
async def test_a_wrong_and_a_missing_key_of_every_provider_are_one_sentence(
    provider: Provider, environ: dict[str, str], home: Path
) -> None:
    wire = str(wire_format(provider))
    server = model_server(
        "/v1" if wire == "openai" else "", wire=wire, key=KEY, models=[provider.default_model]
    )
    async with model_site(server) as site:
        wrong = await doctor(environ | settings_of(provider, site, f"{KEY}-wrong"))
    missing = await doctor(environ | {"LARKSPUR_LLM__PROVIDER": provider.name})
    assert wrong["state"] == "fail"
    assert f"rejects the API key in {provider.key_variable} at " in wrong["sentence"]
    assert missing["state"] == "fail"
    assert f"needs a key: set {provider.key_variable} or llm.api_key" in missing["sentence"]


@pytest.mark.slow
async def test_the_line_that_doctor_prints_makes_the_address_work(
    environ: dict[str, str], home: Path
) -> None:
    async with model_site(model_server("/v1", key=KEY, models=["m-1", "m-2"])) as site:
        environ |= {"OPENAI_API_KEY": f'"Bearer {KEY}"', "LARKSPUR_LLM__MODEL": "m-3"}
        environ["OPENAI_BASE_URL"] = f"{site.origin}/v1/chat/completions"
        found = await doctor(environ)
        assert found["sentence"] == (
            f"{site.origin}/v1/chat/completions does not answer as a model server does (404);"
            f" {site.origin}/v1 answers as a model server does: set llm.base_url to it."
        )
        line, _, note = found["advice"].partition(" Left out")
        assert line == f"export OPENAI_BASE_URL={site.origin}/v1"
        assert note == " around llm.api_key: quotes and “Bearer”."
        name, _, value = line.removeprefix("export ").partition("=")
        environ[name] = value
        found = await doctor(environ)
        assert (found["state"], found["sentence"]) == (
            "warn",
            "OpenAI does not list the model m-3; near it are m-2, m-1.",
        )
        environ["LARKSPUR_LLM__MODEL"] = "m-2"
        assert (await doctor(environ))["state"] == "ok"
        code, output = await larkspur(environ, "models", "list")
        assert (code, output.splitlines()) == (0, ["m-1", "m-2 *", "OpenAI lists 2 models."])
        _, output = await larkspur(environ, "models", "list", "openai", "--json")
        assert json.loads(output)["models"] == ["m-1", "m-2"]


@pytest.mark.slow
async def test_an_address_in_a_file_is_corrected_at_its_line_also_without_a_scheme(
    environ: dict[str, str], home: Path
) -> None:
    async with model_site(model_server("/v1")) as site:
        bare = site.origin.removeprefix("http://")
        file = home / "config.yaml"
        for entered in (site.origin, bare, f"{bare}/v1"):
            file.write_text(f"llm:\n  provider: openai\n  base_url: '{entered}'\n")
            _, output = await larkspur(environ, "doctor")
            (said,) = [line for line in output.splitlines() if line.startswith("fail  model: ")]
            assert f"{site.origin}/v1 answers as a model server does" in said
            assert f"base_url: {site.origin}/v1" in said or "LARKSPUR_LLM__BASE_URL=" in said
        file.write_text(f"llm:\n  provider: openai\n  base_url: {site.origin}\n")
        found = await doctor(environ)
        assert found["advice"] == f"Write base_url: {site.origin}/v1 at {file}:3."


@pytest.mark.slow
async def test_fallbacks_are_checked_too(environ: dict[str, str], home: Path) -> None:
    async with (
        model_site(model_server("/v1", models=["m"])) as first,
        model_site(lambda _: page()) as second,
    ):
        environ |= {
            "LARKSPUR_LLM__PROVIDER": "openai",
            "LARKSPUR_LLM__MODEL": "m",
            "LARKSPUR_LLM__BASE_URL": f"{first.origin}/v1",
            "LARKSPUR_LLM__FALLBACKS": '["deepseek:m"]',
            "LARKSPUR_LLM__BASE_URLS": json.dumps({"deepseek": f"{second.origin}/v1"}),
            "DEEPSEEK_API_KEY": KEY,
        }
        _, output = await larkspur(environ, "doctor", "--json")
        found = [one for one in json.loads(output) if one["name"] == "model"]
        assert [one["state"] for one in found] == ["ok", "fail"]
        assert "sends a web page “Open WebUI”" in found[1]["sentence"]


@pytest.mark.slow
async def test_models_that_cannot_be_listed_are_an_error_with_a_sentence(
    environ: dict[str, str], home: Path
) -> None:
    environ |= {"LARKSPUR_LLM__PROVIDER": "openai", "OPENAI_API_KEY": KEY}
    address = environ["OPENAI_BASE_URL"] = f"http://127.0.0.1:{free_port()}/v1"
    code, output = await larkspur(environ, "models", "list")
    assert (code, f"{address} refuses the connection." in output) == (1, True)
    code, output = await larkspur(environ, "models", "list", "nobody")
    assert (code, "There is no provider nobody." in output) == (3, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [
        SiteAnswer({"detail": "Not Found"}, 404),
        SiteAnswer({"error": {"message": "Invalid URL (POST /chat/completions)"}}, 404),
        SiteAnswer({"detail": "Method Not Allowed"}, 405),
        page(),
        page(status=404),
        page("<html>Sign in</html>", 403),
        SiteAnswer("", 302, {"location": "/login"}),
        SiteAnswer({"error": "Unexpected endpoint or method. (POST /chat/completions)"}, 404),
    ],
    ids=["404", "invalid url", "405", "page", "page 404", "login", "redirect", "lm studio"],
)
async def test_a_run_at_a_wrong_address_names_the_doctor(
    answer: SiteAnswer, environ: dict[str, str], home: Path
) -> None:
    async with model_site(lambda _: answer) as site:
        environ |= {"LARKSPUR_LLM__PROVIDER": "openai", "OPENAI_API_KEY": KEY}
        environ["OPENAI_BASE_URL"] = site.origin
        code, output = await larkspur(environ, "-p", "hello", "--local", "--here")
        assert code not in {0, 3}
        assert "does not answer as a model server does" in output
        assert "larkspur doctor" in output
        assert len(site.requests) == 1


@pytest.mark.slow
async def test_a_model_that_does_not_exist_is_not_taken_for_a_wrong_address(
    environ: dict[str, str], home: Path
) -> None:
    answer = SiteAnswer({"error": {"message": "The model `m` does not exist"}}, 404)
    async with model_site(lambda _: answer) as site:
        environ |= {"LARKSPUR_LLM__PROVIDER": "openai", "OPENAI_API_KEY": KEY}
        environ["OPENAI_BASE_URL"] = site.origin
        _, output = await larkspur(environ, "-p", "hello", "--local", "--here")
        assert "The model `m` does not exist" in output
        assert "doctor" not in output


async def test_a_key_that_was_pasted_with_quotes_works_in_a_run(
    environ: dict[str, str], home: Path
) -> None:
    async with ScriptedOpenAI([Reply(text="It works.")], api_key=KEY) as model:
        environ |= {"LARKSPUR_LLM__PROVIDER": "openai", "LARKSPUR_AGENT__GATES": "off"}
        environ |= {
            "OPENAI_BASE_URL": f" '{model.base_url}'",
            "OPENAI_API_KEY": f"export K='{KEY}'",
        }
        code, output = await larkspur(environ, "-p", "hello", "--local", "--here")
        assert (code, "It works." in output) == (0, True), output
