"""compose.yaml: checked, and its services of Larkspur started as processes."""

import asyncio
import json
import re
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from compose_spec import PyCompose

from internal.channels.cli.commands.registry import build_parser
from internal.config.setting_keys import VARIABLES
from internal.model_providers.registry import PROVIDERS
from tests import ROOT
from tests.support.dockerfile import read_stages
from tests.support.gateway_process import LARKSPUR, running_gateway
from tests.support.postgres_server import postgres_url
from tests.support.s3_server import s3_server

FILE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = FILE["services"]
OURS = [name for name, each in SERVICES.items() if each["image"] == "larkspur"]
PROFILES = ("single", "team")
IMAGE = read_stages(ROOT / "Dockerfile")[-1]
HEALTH = re.compile(r"Its health: http://127\.0\.0\.1:(\d+)/health")


def of_profile(profile: str) -> dict[str, dict[str, Any]]:
    return {name: each for name, each in SERVICES.items() if profile in each["profiles"]}


def example(profile: str, *, with_comments: bool = False) -> dict[str, str]:
    """Return the variables of the example .env file, optionally with the commented-out ones."""
    text = (ROOT / f"configs/deploy/{profile}.env.example").read_text()
    comment = "(?:# )?" if with_comments else ""
    return dict(re.findall(rf"^{comment}([A-Z][A-Z0-9_]*)=(.*)$", text, re.MULTILINE))


def command(service: dict[str, Any]) -> list[str]:
    [default] = IMAGE.of("CMD")
    return list(service.get("command", json.loads(default.text)))


def interpolated(text: str, variables: dict[str, str]) -> str:
    """Return a value as Compose passes it to a container."""
    return re.sub(r"\$\{(\w+)-\}", lambda found: variables.get(found[1], ""), text)


def texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for each in value.values():
                yield from texts(each)
        case list():
            for each in value:
                yield from texts(each)
        case _:
            pass


def test_the_file_follows_the_specification() -> None:
    parsed = PyCompose.from_json(json.dumps(FILE))
    parsed.validate()
    assert sorted(parsed.service_names()) == sorted(SERVICES)


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ('"unless-stopped"', '"sometimes"', "unknown variant `sometimes`"),
        ('"home:/data"', '"hom:/data"', "volume `hom`"),
        ('"service_healthy"', '"service_well"', "unknown variant `service_well`"),
        ('"memory": "4g"', '"memory": "much"', "value `much`"),
    ],
)
def test_the_check_finds_mistakes(right: str, wrong: str, said: str) -> None:
    text = json.dumps(FILE)
    assert right in text
    with pytest.raises(ValueError, match=said):
        PyCompose.from_json(text.replace(right, wrong)).validate()


def test_a_profile_has_the_services_that_it_needs() -> None:
    assert set(of_profile("single")) == {"gateway"}
    assert set(of_profile("team")) == {*SERVICES} - {"gateway"}
    team = of_profile("team")
    assert sum("serve" in command(team[name]) for name in team if name in OURS) == 2
    assert team["worker"]["deploy"]["replicas"] == 2
    for profile in PROFILES:
        assert example(profile)["COMPOSE_PROFILES"] == profile
        for name, each in of_profile(profile).items():
            other = each.get("network_mode", "").removeprefix("service:")
            needed = {*each.get("depends_on", {}), *({other} - {"", "host"})}
            assert needed <= set(of_profile(profile)), name


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_bounded_restarted_and_checked(name: str) -> None:
    service = SERVICES[name]
    assert service["restart"] == "unless-stopped"
    assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory", "pids"}
    assert "no-new-privileges:true" in service["security_opt"]
    assert "max-size" in service["logging"]["options"]
    assert not service.get("privileged")
    assert re.fullmatch(r"larkspur|[\w/]+:\d+(\.\d+)?", service["image"])
    assert ("healthcheck" in service) or name in OURS  # the image has one
    for other, wanted in service.get("depends_on", {}).items():
        if wanted["condition"] == "service_healthy":
            assert "test" in SERVICES[other]["healthcheck"]
    for volume in service.get("volumes", ()):
        source = volume.partition(":")[0]
        assert source in FILE["volumes"] or (ROOT / source).is_file()
    ports = [each.partition(":")[0] for each in service.get("ports", ())]
    assert ports == (["80", "443"] if name == "proxy" else [])


@pytest.mark.parametrize("name", OURS)
def test_a_process_of_larkspur_has_few_rights_and_time_to_stop(name: str) -> None:
    service = SERVICES[name]
    assert (service["read_only"], service["cap_drop"], service["init"]) == (True, ["ALL"], True)
    [folder] = json.loads(IMAGE.of("VOLUME")[0].text)
    assert service["volumes"] == [f"home:{folder}"]
    unit = (ROOT / "configs/deploy/larkspur.service").read_text()
    assert f"TimeoutStopSec={service['stop_grace_period'].removesuffix('s')}\n" in unit
    build_parser().parse_args(command(service))
    unknown = {
        variable
        for variable in service.get("environment", {})
        if variable.startswith("LARKSPUR_") and variable not in VARIABLES
    }
    assert unknown == set()


@pytest.mark.parametrize("profile", PROFILES)
def test_the_example_of_the_environment_has_every_variable(profile: str) -> None:
    given = example(profile, with_comments=True)
    named = {
        name for text in texts(of_profile(profile)) for name in re.findall(r"\$\{(\w+)-\}", text)
    }
    assert not any("$" in re.sub(r"\$\{\w+-\}", "", text) for text in texts(FILE))
    assert named <= set(given)
    keys = {each.key_variable for each in PROVIDERS}
    others = set(given) - named - keys - {"COMPOSE_PROFILES"}
    assert others <= set(VARIABLES), "it is passed to Larkspur, which refuses unknown variables"


def test_the_proxy_knows_the_gateways() -> None:
    environment = SERVICES["proxy"]["environment"]
    ports = [
        each["environment"]["LARKSPUR_SERVER__PORT"]
        for each in SERVICES.values()
        if each.get("network_mode") == "service:proxy"
    ]
    assert environment["LARKSPUR_GATEWAYS"].split() == [f"127.0.0.1:{port}" for port in ports]
    caddyfile = (ROOT / "configs/deploy/Caddyfile").read_text()
    assert set(re.findall(r"\{\$(\w+)", caddyfile)) == set(environment)
    # the image checks the default port; a gateway on another one says so
    for each in SERVICES.values():
        given = each.get("environment", {})
        port = given.get("LARKSPUR_SERVER__PORT", "8420")
        port = given.get("LARKSPUR_DISPATCH__HEALTH_PORT", port)
        if port != "8420":
            assert each["healthcheck"]["test"][-1] == port


@pytest.mark.parametrize(
    "profile",
    ["single", pytest.param("team", marks=[pytest.mark.postgres, pytest.mark.slow])],
)
async def test_a_profile_works_as_processes(
    profile: str, environ: dict[str, str], home: Path, tmp_path: Path
) -> None:
    """With the commands and environments of the containers, on free ports of this machine."""
    machine = {key: environ[key] for key in ("PATH", "LANG", "HOME", "LARKSPUR_HOME")}
    services = {name: each for name, each in of_profile(profile).items() if name in OURS}
    async with AsyncExitStack() as stack:
        hosts: dict[str, str] = {}
        secrets = example(profile)
        if profile == "team":
            hosts, more = await stack.enter_async_context(team_services(tmp_path / "s3"))
            secrets |= more
        gateways = []
        checked: list[int] = []
        """The ports of workers."""
        for service in services.values():
            environment: dict[str, str] = service.get("environment", {})
            given = {key: interpolated(text, secrets) for key, text in environment.items()}
            given = {key: moved(text, hosts) for key, text in given.items()}
            ports = {"LARKSPUR_SERVER__PORT": "0", "LARKSPUR_DISPATCH__HEALTH_PORT": "0"}
            variables = {**machine, **secrets, **given, **ports}
            arguments: list[str | Path] = [LARKSPUR, *command(service)]
            if "serve" in arguments:
                serving = running_gateway(variables, home, *arguments, provider="")
                gateways.append(await stack.enter_async_context(serving))
                continue
            for _ in range(service["deploy"]["replicas"]):
                working = running_worker(variables, home, *arguments)
                checked.append(await stack.enter_async_context(working))
        first, last = gateways[0].client, gateways[-1].client
        made = (await first.post("/api/tasks?wait=60", {"task": "what is 6*7"})).json()
        assert "42" in made["run"]["answer"]
        assert (await last.get(f"/api/tasks/{made['task_id']}")).json()["run"] == made["run"]
        check = ROOT / "configs/deploy/check_health.py"
        for port in (*(each.client.port for each in gateways), *checked):
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, check, str(port)), stdout=asyncio.subprocess.PIPE
            )
            assert (await process.communicate())[0] == b"ok\n"
            assert process.returncode == 0
        assert len(checked) == (2 if profile == "team" else 0)


@asynccontextmanager
async def team_services(folder: Path) -> AsyncGenerator[tuple[dict[str, str], dict[str, str]]]:
    """Run PostgreSQL and an S3 service; yield where they are, and the values of .env for them."""
    async with s3_server(folder) as s3, postgres_url() as url:
        (folder / "larkspur").mkdir()
        place = urlsplit(url)
        hosts = {
            "@postgres:5432/larkspur": f"@127.0.0.1:{place.port}{place.path}",
            "http://s3:8333": s3.endpoint,
        }
        assert place.username == "larkspur"
        yield (
            hosts,
            {
                "POSTGRES_PASSWORD": place.password or "",
                "LARKSPUR_ATTACHMENTS__S3__ACCESS_KEY": s3.access_key,
                "LARKSPUR_ATTACHMENTS__S3__SECRET_KEY": s3.secret_key,
            },
        )


@asynccontextmanager
async def running_worker(
    environ: dict[str, str], home: Path, *arguments: str | Path
) -> AsyncGenerator[int]:
    """Run a worker and yield the port of its health check.

    It must live until it is stopped, and end in order.
    """
    process = await asyncio.create_subprocess_exec(
        *arguments, env=environ, cwd=home.parent, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(60):
            while not (found := HEALTH.search((await process.stderr.readline()).decode())):
                assert process.returncode is None
        yield int(found[1])
    finally:
        assert process.returncode is None, await process.communicate()
        process.terminate()
        await process.communicate()
        assert process.returncode == 0


def moved(text: str, hosts: dict[str, str]) -> str:
    """Return a value with container addresses replaced by addresses of this machine."""
    for host, here in hosts.items():
        text = text.replace(host, here)
    return text
