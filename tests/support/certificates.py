"""A certificate authority for tests, made with OpenSSL."""

import subprocess
from pathlib import Path
from typing import NamedTuple

from internal.simulators.lark.server import TlsIdentity


class Authority(NamedTuple):
    """The certificate of an authority, and a server identity that it signed."""

    ca_file: Path
    server: TlsIdentity


def make_authority(folder: Path, host: str) -> Authority:
    """Write a new authority and the identity of a host to a folder."""
    ca, ca_key, request = folder / "ca.pem", folder / "ca.key", folder / "server.csr"
    server, key, extensions = folder / "server.pem", folder / "server.key", folder / "server.ext"
    extensions.write_text(f"subjectAltName=DNS:{host}\n", encoding="utf-8")
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    _openssl(
        *("req", "-x509", *new_key, "-keyout", ca_key, "-out", ca, "-days", "2"),
        *("-subj", "/CN=Larkspur Test CA", "-addext", "keyUsage=critical,keyCertSign"),
    )
    _openssl("req", *new_key, "-keyout", key, "-out", request, "-subj", f"/CN={host}")
    _openssl(
        *("x509", "-req", "-in", request, "-CA", ca, "-CAkey", ca_key, "-CAcreateserial"),
        *("-out", server, "-days", "2", "-extfile", extensions),
    )
    return Authority(ca, TlsIdentity(host, server, key))


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
