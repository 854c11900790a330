"""Scenarios for clients in Python. A client's program passes functions; each result is a line."""

import base64
import json
import os
import signal
import subprocess
import sys
import traceback
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

URL = os.environ["LARKSPUR_URL"]
BASE_URL = f"{URL}/v1"
KEY = os.environ["LARKSPUR_KEY"]
MODEL = os.environ.get("LARKSPUR_MODEL", "larkspur")
CASE = os.environ["LARKSPUR_CASE"]
DOOR = os.environ["LARKSPUR_DOOR"]
INSTALLED = Path(os.environ["LARKSPUR_INSTALLED"])
SECONDS = int(os.environ.get("LARKSPUR_SECONDS", "60"))
ONLY = os.environ.get("LARKSPUR_SCENARIO", "")
WRONG_KEY = "no-such-key-0000000000000000000000000000"
SYSTEM = "Speak like a pirate."
TOOL = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Adds two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
}

Message = dict[str, Any]


class Absent(Exception):
    """The client cannot do this, and that is no fault of the gateway."""


def _chunk(kind: bytes, data: bytes) -> bytes:
    body = kind + data
    return len(data).to_bytes(4) + body + zlib.crc32(body).to_bytes(4)


def png() -> bytes:
    """Return a picture of 64 by 64 red pixels."""
    side = 64
    head = side.to_bytes(4) * 2 + bytes([8, 2, 0, 0, 0])
    rows = (b"\0" + b"\xff\0\0" * side) * side
    chunks = _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def picture() -> str:
    """Return the picture as a data URL."""
    return "data:image/png;base64," + base64.b64encode(png()).decode()


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def prompt(scenario: str) -> str:
    """Return the text by which the scripted model knows the scenario and the client."""
    return f"case: {scenario} [{CASE}]"


def say(scenario: str, **result: Any) -> None:
    print(json.dumps({"scenario": scenario, **result}), flush=True)


def _told(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


def attempt(scenario: str, work: Callable[[], Any]) -> None:
    """Do one scenario in its time, and print its result or the error."""
    if ONLY and scenario not in ONLY.split(","):
        return

    def late(*_: object) -> None:
        raise TimeoutError(f"no answer in {SECONDS} seconds")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        say(scenario, result=work())
    except Absent as error:
        say(scenario, absent=str(error))
    # Each client raises errors of its own, and they are the recorded result.
    except BaseException as error:
        traceback.print_exc()
        say(scenario, error=_told(error))
    finally:
        signal.alarm(0)


def output_of(
    *argv: str | Path, environ: Mapping[str, str] | None = None, with_errors: bool = False
) -> str:
    """Run a command of the client and return its output, `with_errors` including standard error.

    Raises:
        RuntimeError: The command failed; the message is the end of its output.
    """
    found = subprocess.run(
        argv,
        env={**os.environ, **(environ or {})},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=SECONDS - 5,
    )
    if found.returncode:
        raise RuntimeError((found.stdout + found.stderr).strip()[-900:])
    return found.stdout + found.stderr if with_errors else found.stdout


def chat(
    ask: Callable[..., str | None],
    *,
    models: Callable[[], Sequence[str]] | None = None,
    without: Mapping[str, str] | None = None,
) -> None:
    """Do all scenarios of a chat client.

    `ask` takes messages as in Chat Completions and `stream`, `tools` and `key`, and returns the
    text. `without` says which scenarios the client cannot do, and why.
    """
    left_out = without or {}

    def one(scenario: str, work: Callable[[], Any]) -> None:
        if scenario in left_out:
            say(scenario, absent=left_out[scenario])
            return
        attempt(scenario, work)

    def call(messages: list[Message], **options: Any) -> str | None:
        settings = {"stream": False, "tools": None, "key": KEY, **options}
        return ask(messages, **settings)

    def history() -> str | None:
        messages: list[Message] = []
        answer: str | None = None
        for scenario in ("write", "plain", "read"):
            messages.append(user(prompt(scenario)))
            answer = call([*messages])
            messages.append({"role": "assistant", "content": answer})
        return answer

    def image() -> str | None:
        parts = [
            {"type": "text", "text": prompt("picture")},
            {"type": "image_url", "image_url": {"url": picture()}},
        ]
        return call([{"role": "user", "content": parts}])

    system = {"role": "system", "content": SYSTEM}
    one("plain", lambda: call([user(prompt("plain"))]))
    one("stream", lambda: call([user(prompt("stream"))], stream=True))
    one("history", history)
    one("tools", lambda: call([user(prompt("tools"))], tools=[TOOL]))
    one("picture", image)
    one("system", lambda: call([system, user(prompt("system"))]))
    one("wrong key", lambda: call([user(prompt("plain"))], key=WRONG_KEY))
    one("failing", lambda: call([user(prompt("failing"))]))
    if models:
        one("models", lambda: list(models()))
    else:
        say("models", absent="it does not list models")
    sys.stdout.flush()


def end() -> None:
    """Leave without waiting for threads of the client."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
