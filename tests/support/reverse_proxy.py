"""The reverse proxies of configs/deploy as processes: nginx and Caddy on 127.0.0.1 with TLS."""

import asyncio
import contextlib
import os
import re
import ssl
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from tests import ROOT
from tests.support.certificates import Authority, make_authority
from tests.support.http_client import HttpClient
from tests.support.ports import free_port

HOST = "larkspur.example.com"
"""The host in the examples."""
NGINX, CADDY = "nginx", "caddy"
Change = Callable[[str], str]


class ProxySite(NamedTuple):
    """The public address of gateways behind a proxy that a test starts, and its certificate."""

    folder: Path
    port: int
    authority: Authority
    path: str = ""

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port}{self.path}"


def make_site(folder: Path) -> ProxySite:
    """Choose a free port and make a certificate."""
    folder.mkdir()
    return ProxySite(folder, free_port(), make_authority(folder, HOST))


class ProxyClient(HttpClient):
    """Talks to a site with TLS, through its proxy on 127.0.0.1."""

    def __init__(self, site: ProxySite, token: str) -> None:
        super().__init__(HOST, site.port, token)
        self._tls = ssl.create_default_context(cafile=site.authority.ca_file)

    async def connect(
        self, *, receive_buffer: int | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        limit = receive_buffer or 65_536
        return await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=self._tls, server_hostname=HOST, limit=limit
        )


@asynccontextmanager
async def run_proxy(
    kind: str, site: ProxySite, gateways: Sequence[int], change: Change = str
) -> AsyncGenerator[None]:
    """Run nginx or Caddy with its example in front of the gateways on these ports.

    Only addresses, ports and paths of the example are replaced, and what `change` changes.
    """
    command, environ, ready = proxy_command(kind, site, gateways, change)
    process = await asyncio.create_subprocess_exec(
        *command, env=environ, cwd=site.folder, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        log = ""
        async with asyncio.timeout(30):
            while ready not in log:
                line = (await process.stderr.readline()).decode()
                assert line, f"{kind} ended: {log}"
                log += line
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(process.stderr.read())  # a full pipe would block it
            yield
            reading.cancel()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill() if kind == CADDY else process.terminate()
        await process.communicate()


def proxy_command(
    kind: str, site: ProxySite, gateways: Sequence[int], change: Change = str
) -> tuple[list[str], dict[str, str], str]:
    """Return the command and the environment of a proxy, and what it says when it is ready."""
    return (_nginx if kind == NGINX else _caddy)(site, gateways, change)


def below_path(text: str) -> str:
    """Change an example as it says for an address with the path /larkspur."""
    if "uri strip_prefix" in text:
        return replaced(text, r"^\t# (redir|uri) ", r"\t\1 ")
    removed = replaced(text, r"^    location / \{\n        proxy_pass http://larkspur;\n", "")
    return replaced(removed, r"^    # (?=location|    proxy_pass)", "    ")


def replaced(text: str, pattern: str, replacement: str) -> str:
    """Return a text in which a pattern was replaced; it must be there."""
    changed, count = re.subn(
        pattern, lambda found: found.expand(replacement), text, flags=re.MULTILINE
    )
    assert count, f"{pattern} is not in the example"
    return changed


def _nginx(
    site: ProxySite, gateways: Sequence[int], change: Change
) -> tuple[list[str], dict[str, str], str]:
    text = (ROOT / "configs/deploy/nginx.conf").read_text()
    one, *more = gateways
    text = replaced(text, r"127\.0\.0\.1:8420", f"127.0.0.1:{one}")
    if more:
        text = replaced(text, r"# server 127\.0\.0\.1:8421", f"server 127.0.0.1:{more[0]}")
    text = replaced(text, r"listen 443 ", f"listen 127.0.0.1:{site.port} ")
    text = replaced(text, r"listen 80;", f"listen 127.0.0.1:{free_port()};")
    text = replaced(
        text, r"/etc/ssl/larkspur/fullchain\.pem", str(site.authority.server.certificate)
    )
    text = replaced(text, r"/etc/ssl/larkspur/key\.pem", str(site.authority.server.key))
    (site.folder / "larkspur.conf").write_text(change(text))
    temporary = "".join(
        f"{name}_temp_path {site.folder}/{name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (site.folder / "nginx.conf").write_text(
        f"{'user root;' if os.geteuid() == 0 else ''}\n"
        f"daemon off; pid {site.folder}/pid; error_log stderr notice;\n"
        "events {}\n"
        f"http {{\naccess_log off;\n{temporary}include {site.folder}/larkspur.conf;\n}}\n"
    )
    return (
        ["nginx", "-c", f"{site.folder}/nginx.conf", "-p", str(site.folder)],
        _PATH,
        "start worker process ",
    )


def _caddy(
    site: ProxySite, gateways: Sequence[int], change: Change
) -> tuple[list[str], dict[str, str], str]:
    text = (ROOT / "configs/deploy/Caddyfile").read_text()
    tls = f"bind 127.0.0.1\n\ttls {site.authority.server.certificate} {site.authority.server.key}\n"
    text = replaced(
        text,
        r"^\{\$LARKSPUR_SERVER__PUBLIC_URL\} \{$",
        f"{{$LARKSPUR_SERVER__PUBLIC_URL}} {{\n\t{tls}",
    )
    text = replaced(text, r"^\{$", "{\n\tauto_https disable_redirects")
    config = site.folder / "Caddyfile"
    config.write_text(change(text))
    environ = {
        **_PATH,
        "HOME": str(site.folder),
        "CADDY_ADMIN": "off",
        "LARKSPUR_SERVER__PUBLIC_URL": site.url,
        "LARKSPUR_GATEWAYS": " ".join(f"127.0.0.1:{port}" for port in gateways),
    }
    command = ["caddy", "run", "--adapter", "caddyfile", "--config", str(config)]
    return command, environ, "serving initial configuration"


_PATH = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
