"""Environment variables that Kubernetes and Docker set for services of any name.

Each container gets some for every service of its namespace, or for every linked container; for a
service called larkspur they begin like the variables of Larkspur's settings.
"""

import re
from collections.abc import Mapping

_ADDRESS = re.compile(r"(?:tcp|udp|sctp)://\S+")
_HOST = re.compile(r"[0-9a-zA-Z_.:-]+")
_NUMBER = re.compile(r"[0-9]{1,5}")
_PROTOCOL = re.compile(r"tcp|udp|sctp")
_LINK = re.compile(r"/\S+/\S+")
_PORT = r"_PORT_[0-9]+(?:_[0-9]+)?_(?:TCP|UDP|SCTP)"
_FORMS = (
    (re.compile(r"_SERVICE_HOST$"), _HOST),
    (re.compile(r"_SERVICE_PORT(?:_[A-Z0-9_]+)?$"), _NUMBER),
    (re.compile(r"_PORT$"), _ADDRESS),
    (re.compile(rf"{_PORT}(?:_START|_END)?$"), _ADDRESS),
    (re.compile(rf"{_PORT}_PROTO$"), _PROTOCOL),
    (re.compile(rf"{_PORT}_PORT(?:_START|_END)?$"), _NUMBER),
    (re.compile(rf"{_PORT}_ADDR$"), _HOST),
    (re.compile(r"_NAME$"), _LINK),
)
"""Ends of names, and the values that they have."""
_VARIABLE_OF_LINK = re.compile(r"(.+)_ENV_.+")


def is_service_link(name: str, environ: Mapping[str, str]) -> bool:
    """Return True for a variable whose name and value have the form of one for a service."""
    value = environ[name].strip()
    if any(form.search(name) and kind.fullmatch(value) for form, kind in _FORMS):
        return True
    # a link of Docker also passes on the variables of the container, with any values
    found = _VARIABLE_OF_LINK.fullmatch(name)
    return found is not None and bool(_LINK.fullmatch(environ.get(f"{found[1]}_NAME", "")))
