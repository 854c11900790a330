"""Connection parameters of an address, as passed to the driver."""

import ssl
from pathlib import Path

import asyncpg
import pytest

from internal.database_address.address import parse_address
from internal.storage.postgres.connection import _driver_url, _system_tls


def test_the_driver_gets_the_parameters_of_tls_only(tmp_path: Path) -> None:
    root = tmp_path / "root one.crt"
    root.touch()
    given = f"sslmode=verify-full&sslrootcert={root}&application_name=a&connect_timeout=5".replace(
        " ", "%20"
    )
    address = parse_address(f"postgresql://ana:secret-pw@host/name?{given}")
    url = _driver_url(address)
    assert url.startswith("postgresql://?sslmode=verify-full&sslrootcert=")
    assert url.endswith("root+one.crt")
    assert _system_tls(address) is None
    root.unlink()
    with pytest.raises(asyncpg.ClientConfigurationError, match="sslrootcert names no file"):
        _driver_url(address)


def test_the_certificates_of_the_system_check_the_name_of_the_host() -> None:
    address = parse_address("postgresql://ana@host/name?sslmode=verify-full&sslrootcert=system")
    context = _system_tls(address)
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert _driver_url(address) == "postgresql://"
