"""A gateway with a scripted model, as the clients meet it."""

import asyncio
import json
import os
import re
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.gateway_process import RunningGateway, running_gateway
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import Call, Fault, Reply, encode

STREAMED = "Streamed  answer,\n\nin two parts."
SLOW_SECONDS = 7.0
BYTES_A_TOKEN = 4
MAX_RESULT = 2_000
SYSTEM = "Speak like a pirate."
_CASE = re.compile(r"case: ([a-z]+) \[([^\]]*)\](?: (\{.*\}))?")
_TOOL_OF_SERVER = re.compile(r"mcp__(.+?)__.*")
_PASSED = ("PATH", "JAVA_HOME", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")


class Place(NamedTuple):
    """The gateway with the requests to its model.

    `failures` counts the runs of failing cases by the name of the client; `tool_tokens` is the
    number of tokens that the tools of each MCP server take in a request.
    """

    gateway: RunningGateway
    model: ScriptedOpenAI
    failures: Counter[str]
    tool_tokens: dict[str, int]
    home: Path

    @property
    def url(self) -> str:
        client = self.gateway.client
        return f"http://{client.host}:{client.port}"


def words(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


class ClientScript:
    """Replies to the last case that a conversation names."""

    def __init__(self) -> None:
        self.failures: Counter[str] = Counter()
        self.tool_tokens: dict[str, int] = {}

    def __call__(self, body: Mapping[str, Any]) -> Reply:
        messages = body["messages"]
        self.tool_tokens |= _tool_tokens(body.get("tools", []))
        asked = [words(each["content"]) for each in messages if each["role"] == "user"]
        cases = [case for text in asked for case in _CASE.findall(text)]
        if not cases:
            return Reply(text="No case is named.")
        scenario, client, given = cases[-1]
        if scenario == "failing":
            # Helper requests, such as those for titles, have no tools and are no runs.
            self.failures[client] += "tools" in body
            return Reply(fault=Fault("status", status=400, message="This task cannot be done."))
        if messages[-1]["role"] == "tool":
            return _after_call(scenario, words(messages[-1]["content"]))
        if call := _call_of(scenario, given):
            return Reply(calls=[call])
        return _answer(scenario, messages)


def _call_of(scenario: str, given: str) -> Call | None:
    match scenario:
        case "write":
            return Call("write_file", {"path": "notes.md", "content": "remembered"})
        case "read":
            return Call("read_file", {"path": "notes.md"})
        case "use":
            use = json.loads(given)
            return Call(use["tool"], use["arguments"])
        case _:
            return None


def _after_call(scenario: str, result: str) -> Reply:
    if scenario == "use":
        return Reply(text=f"It returned: {result[:MAX_RESULT]}")
    if scenario == "read":
        kept = "remembered" in result
        return Reply(text="The notes say: remembered." if kept else "There are no notes.")
    return Reply(text=f"Answered {scenario}.")


def _answer(scenario: str, messages: list[Mapping[str, Any]]) -> Reply:
    match scenario:
        case "stream":
            return Reply(text=f"\n {STREAMED} \n\n", pieces=6)
        case "picture":
            asked = [each for each in messages if each["role"] == "user"]
            return Reply(text=_picture(asked[-1]))
        case "system":
            return Reply(text=_system(messages))
        case "slow":
            return Reply(text="Answered slow.", delay_seconds=SLOW_SECONDS)
        case _:
            return Reply(text=f"Answered {scenario}.")


def _tool_tokens(tools: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Estimate the tokens of the tools of each server, as `estimate_tokens` of the gateway does."""
    found: dict[str, list[Any]] = {}
    for function in (tool["function"] for tool in tools):
        if server := _TOOL_OF_SERVER.fullmatch(function["name"]):
            row = [function["name"], function["description"], function["parameters"]]
            found.setdefault(server[1], []).append(row)
    return {server: len(encode(rows)) // BYTES_A_TOKEN for server, rows in found.items()}


def _picture(message: Mapping[str, Any]) -> str:
    content = message["content"]
    seen = isinstance(content, list) and any(part["type"] == "image_url" for part in content)
    return "I see a picture." if seen else "I see no picture."


def _system(messages: list[Mapping[str, Any]]) -> str:
    """Say whether the model reads the client's system prompt as instructions."""
    texts: dict[str, str] = {"user": "", "system": ""}
    for each in messages:
        if each["role"] in texts:
            texts[each["role"]] += words(each["content"])
    frame = rf"<instructions [^>]*>((?!</instructions>).)*{re.escape(SYSTEM)}"
    marked = re.search(frame, texts["user"], re.DOTALL)
    if marked or SYSTEM in texts["system"]:
        return "Instructions: kept."
    return "Instructions: a part of the message." if SYSTEM in texts["user"] else "No instructions."


def own_environ() -> dict[str, str]:
    """Return this process's variables for installers: its proxies, certificates and caches.

    Node.js is taken from the environment, where there is one: many packages need a recent one.
    """
    own = dict(os.environ)  # noqa: TID251 - of toolchains
    return {**own, "PATH": f"{Path(sys.executable).parent}:{own['PATH']}"}


def base_environ(home: Path) -> dict[str, str]:
    """Return the variables that programs of others run with: none of this person's own."""
    own = own_environ()
    kept = {name: own[name] for name in _PASSED if name in own}
    return {**kept, "HOME": str(home), "LANG": "C.UTF-8"}


async def _read_all(log: asyncio.StreamReader, path: Path) -> None:
    """Keep the log, so that its pipe is never full."""
    with path.open("wb") as file:
        async for line in log:
            file.write(line)
            file.flush()


@asynccontextmanager
async def place(
    folder: Path, settings: str = "", environ: Mapping[str, str] | None = None
) -> AsyncGenerator[Place]:
    """Serve the home folder of a person, below `folder`, with a scripted model."""
    home = folder / "home" / ".larkspur"
    home.mkdir(parents=True, mode=0o700, exist_ok=True)
    if settings:
        (home / "config.yaml").write_text(settings)
    script = ClientScript()
    async with ScriptedOpenAI(script, record=False) as model:
        variables = {
            **(environ or base_environ(home.parent)),
            # The scripted model makes no plan before it changes a file.
            "LARKSPUR_AGENT__GATES": "off",
            "LARKSPUR_HOME": str(home),
            "LARKSPUR_LLM__PROVIDER": "openai",
            "LARKSPUR_LLM__API_KEY": "sk-proj-" + "k3y" * 12,
            "LARKSPUR_LLM__BASE_URL": model.base_url,
            "LARKSPUR_SERVER__RATE_LIMIT_PER_MINUTE": "100000",
            "LARKSPUR_SERVER__RATE_LIMIT_BURST": "10000",
        }
        async with running_gateway(variables, home, provider="") as gateway:
            log = asyncio.create_task(_read_all(gateway.log, home.parent / "log.txt"))
            try:
                yield Place(gateway, model, script.failures, script.tool_tokens, home)
            finally:
                log.cancel()
