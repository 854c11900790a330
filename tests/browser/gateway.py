"""A gateway and a scripted model as processes of their own, for a browser to talk to."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import msgspec

from tests import ROOT
from tests.support.anthropic_server import Reply

LARKSPUR = Path(sys.executable).with_name("larkspur")


def call(url: str, method: str, path: str, body: Any = None, token: str = "") -> Any:
    """Send a JSON request and return the response."""
    where = urlsplit(url)
    connection = HTTPConnection(where.hostname or "", where.port, timeout=30)
    headers = {"content-type": "application/json"}
    headers |= {"authorization": f"Bearer {token}"} if token else {}
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        reply = connection.getresponse()
        content = reply.read()
    finally:
        connection.close()
    assert reply.status < 300, (path, reply.status, content)
    return json.loads(content) if content else None


@dataclass
class Model:
    """A scripted model: replies are chosen by their `when`, held ones wait for `release`."""

    replies: Sequence[Reply]
    folder: Path
    environ: Mapping[str, str]
    url: str = ""
    _process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        script = self.folder / "script.json"
        script.write_bytes(msgspec.json.encode(self.replies))
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.support.anthropic_server",
                "--port",
                "0",
                "--script",
                script,
            ],
            cwd=ROOT,
            env=dict(self.environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode()
        self.url = re.findall(r"http://[\w.:]+", line)[0]
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.communicate()

    def release(self, name: str) -> None:
        """Let the replies go that wait for this name."""
        call(self.url, "POST", f"/_fake/release/{name}")


@dataclass
class Gateway:
    """`larkspur serve`, which may be killed and started again at the same address."""

    home: Path
    environ: Mapping[str, str]
    port: int = 0
    url: str = ""
    said: str = ""
    _process: subprocess.Popen[bytes] | None = None
    extra: dict[str, str] = field(default_factory=dict)

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._process = subprocess.Popen(
            [LARKSPUR, "serve", "--port", str(self.port)],
            env={**self.environ, **self.extra},
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert self._process.stderr is not None
        self.said = ""
        while " is at http" not in self.said:
            line = self._process.stderr.readline().decode()
            assert line, f"larkspur serve ended: {self.said}"
            self.said += line
        self.url = re.findall(r"is at (http://\S+)", self.said)[0]
        self.port = urlsplit(self.url).port or 0

    def kill(self) -> None:
        """kill -9."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it as a service manager does."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.communicate(timeout=30)
            self._process = None

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask as the owner."""
        token = (self.home / "token").read_text().strip()
        return call(self.url, method, path, body, token)

    def opened(self) -> str:
        """The address that `larkspur open` gives to the browser."""
        program, said = self.home / "browser", self.home / "address"
        program.write_text(f'#!/bin/sh\necho "$1" > {said}\n')
        program.chmod(0o700)
        environ = {**self.environ, "BROWSER": str(program)}
        subprocess.run([LARKSPUR, "open"], env=environ, check=True, capture_output=True)
        return said.read_text().strip()

    def link(self) -> str:
        """A fresh one-time link."""
        return str(self.ask("POST", "/api/links", {})["url"])

    def task(self, text: str, **body: Any) -> dict[str, str]:
        """Give a task and return its ids."""
        given: dict[str, str] = self.ask("POST", "/api/tasks", {"task": text, **body})
        return given

    def events(self, session: str) -> list[dict[str, Any]]:
        """Every stored event of a session, by pages."""
        rows: list[dict[str, Any]] = []
        after = ""
        while True:
            page = self.ask("GET", f"/api/sessions/{session}/events?limit=500{after}")
            rows += page["events"]
            if page["next"] is None:
                return rows
            after = f"&after={page['next']}"
