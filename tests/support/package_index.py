"""A package index for uv, pip and npm with small MCP servers, on an address of this machine."""

import base64
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ADDRESS = "127.0.0.2"
"""Programs ask the proxy for it: their variables exempt 127.0.0.1."""

_PYTHON = """
import json, os, sys

def main():
    mode = sys.argv[1] if len(sys.argv) > 1 else ""
    if mode == "wordy":
        for number in range(200):
            print(f"debug: step {number} of the start", file=sys.stderr)
    if mode and not os.environ.get("LAKE_TOKEN"):
        sys.exit("Error: the environment variable LAKE_TOKEN is not set")
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        answers = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "lake", "version": "@VERSION@"},
            },
            "tools/list": {
                "tools": [
                    {
                        "name": "count_herons",
                        "description": "Version @VERSION@.",
                        "inputSchema": {"type": "object"},
                    }
                ]
            },
        }
        known = asked["method"] in answers
        told = {"result": answers[asked["method"]]} if known else {
            "error": {"code": -32601, "message": "unknown"}
        }
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **told}), flush=True)
"""
_NODE = """#!/usr/bin/env node
const inputSchema = {type: "object"};
const tools = [{name: "count_herons", description: "Version @VERSION@.", inputSchema}];
const answers = {
  initialize: {
    protocolVersion: "2025-11-25",
    capabilities: {tools: {}},
    serverInfo: {name: "lake", version: "@VERSION@"},
  },
  "tools/list": {tools},
};
require("node:readline").createInterface({input: process.stdin}).on("line", (line) => {
  const {id, method} = JSON.parse(line);
  if (id === undefined) return;
  const known = answers[method];
  const told = known ? {result: known} : {error: {code: -32601, message: "unknown"}};
  console.log(JSON.stringify({jsonrpc: "2.0", id, ...told}));
});
"""


class PackageIndex:
    """A package index with its offered packages and the requests that it received."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[str] = []
        self._files: dict[str, tuple[str, bytes]] = {}
        self._versions: dict[str, dict[str, Any]] = {}
        self._wheels: dict[str, list[str]] = {}

    @property
    def environ(self) -> dict[str, str]:
        """The variables that lead installers to this index."""
        return {"UV_DEFAULT_INDEX": f"{self.url}/simple", "npm_config_registry": f"{self.url}/npm"}

    def answer(self, path: str) -> tuple[str, bytes] | None:
        self.asked.append(path)
        return self._files.get(path.rstrip("/"))

    def publish_wheel(self, name: str, version: str) -> None:
        """Offer a package of Python with a program of the same name."""
        module = name.replace("-", "_")
        info = f"{module}-{version}.dist-info"
        files = {
            f"{module}.py": _PYTHON.replace("@VERSION@", version),
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {module}:main\n",
        }
        records = [
            f"{path},sha256={_digest(text.encode())},{len(text)}" for path, text in files.items()
        ]
        files[f"{info}/RECORD"] = "\n".join([*records, f"{info}/RECORD,,", ""])
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            for path, text in files.items():
                archive.writestr(path, text)
        file = f"{module}-{version}-py3-none-any.whl"
        self._files[f"/files/{file}"] = "application/zip", content.getvalue()
        hexdigest = hashlib.sha256(content.getvalue()).hexdigest()
        links = self._wheels.setdefault(name, [])
        links.append(f'<a href="/files/{file}#sha256={hexdigest}">{file}</a>')
        page = f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>"
        self._files[f"/simple/{name}"] = "text/html", page.encode()

    def publish_npm(self, name: str, version: str) -> None:
        """Offer a package of npm with a program of the same name."""
        manifest: dict[str, Any] = {"name": name, "version": version, "bin": {name: "cli.js"}}
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w:gz") as archive:
            for path, text in (
                ("package/package.json", json.dumps(manifest)),
                ("package/cli.js", _NODE.replace("@VERSION@", version)),
            ):
                entry = tarfile.TarInfo(path)
                entry.size, entry.mode = len(text), 0o755
                archive.addfile(entry, io.BytesIO(text.encode()))
        file = f"/files/{name}-{version}.tgz"
        self._files[file] = "application/gzip", content.getvalue()
        digest = base64.b64encode(hashlib.sha512(content.getvalue()).digest()).decode()
        found = self._versions.setdefault(name, {})
        tarball = {"tarball": f"{self.url}{file}", "integrity": f"sha512-{digest}"}
        found[version] = {**manifest, "dist": tarball}
        document = {"name": name, "dist-tags": {"latest": version}, "versions": found}
        self._files[f"/npm/{name}"] = "application/json", json.dumps(document).encode()


@contextmanager
def serve_index() -> Generator[PackageIndex]:
    """Serve an index until the end of the block."""
    index = PackageIndex()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            found = index.answer(self.path)
            kind, body = found or ("text/plain", b"not found")
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - of the base
            pass

    with ThreadingHTTPServer((ADDRESS, 0), Handler) as server:
        index.url = f"http://{ADDRESS}:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield index
        finally:
            server.shutdown()
            thread.join()


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
