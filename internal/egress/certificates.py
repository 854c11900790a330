"""Certificate authorities that servers are verified with."""

import ssl
from functools import lru_cache
from pathlib import Path

# Where distributions keep their certificates. Python builds that are not theirs look elsewhere.
_CA_FILES = (
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/cert.pem",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/ca-bundle.pem",
)


def system_certificates() -> ssl.SSLContext | bool:
    """Return the context of the system's certificates; True if they are OpenSSL's default.

    `SSL_CERT_FILE` and `SSL_CERT_DIR` replace them. Reads files.
    """
    paths = ssl.get_default_verify_paths()  # a path that does not exist is None
    if paths.cafile or (paths.capath and any(Path(paths.capath).glob("*.[0-9]"))):
        return True
    file = next((file for file in _CA_FILES if Path(file).is_file()), None)
    return True if file is None else ssl.create_default_context(cafile=file)


def system_context() -> ssl.SSLContext:
    """Return the context of the system's certificates, for clients that need one. Reads files."""
    tls = system_certificates()
    return tls if isinstance(tls, ssl.SSLContext) else ssl.create_default_context()


def public_certificates() -> ssl.SSLContext:
    """Return the context of certifi's certificates and the system's. Must not be changed.

    It takes 50 ms to read them, so all clients share one context.
    """
    return _public_context(ssl.get_default_verify_paths())


def public_and_own_certificates(ca_file: Path) -> ssl.SSLContext:
    """Return the context of the public certificates and the certificates of a PEM file.

    Raises:
        OSError, ssl.SSLError: the file cannot be read or contains no certificate.
    """
    context = _make_context()
    context.load_verify_locations(ca_file)
    return context


@lru_cache(maxsize=1)
def _public_context(_paths: ssl.DefaultVerifyPaths) -> ssl.SSLContext:
    return _make_context()


def _make_context() -> ssl.SSLContext:
    import certifi  # noqa: PLC0415  # imported only where it is used

    context = ssl.create_default_context(cafile=certifi.where())
    context.set_alpn_protocols(["http/1.1"])
    context.load_default_certs()  # the system's, or those of SSL_CERT_FILE and SSL_CERT_DIR
    return context
