"""Loads lark-oapi's websocket client without its 10,000 modules of REST models.

`import lark_oapi` takes 5 seconds and 170 MB, nearly all of it for unused models. The client,
`lark_oapi/ws/client.py`, needs only the package object and one class for an annotation. Therefore
the package is registered unexecuted, and executed on the first access to another attribute.
"""

import logging
import re
import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

_PACKAGE = "lark_oapi"
_HANDLERS = "lark_oapi.event.dispatcher_handler"
_SECRETS = re.compile(r"((?:access_key|ticket|token|secret)=)[^&\s\"']+", re.IGNORECASE)


class SecretFilter(logging.Filter):
    """Redacts secrets in the client's log records.

    Records about a lost connection are dropped; the supervisor logs it with the reason.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact a record; return False to drop it."""
        text = record.getMessage()
        record.msg, record.args = _SECRETS.sub(r"\1•••", text), ()
        return not text.startswith(("receive message loop exit", "ping failed"))


def load_websocket_client() -> ModuleType:
    """Return `lark_oapi.ws.client`. Its variable `loop` is the loop of its clients.

    Raises:
        ImportError: lark-oapi is missing or not the pinned version.
    """
    if _PACKAGE not in sys.modules:
        sys.modules[_PACKAGE] = _lazy_package()
    needed = _HANDLERS not in sys.modules
    if needed:
        stand_in = sys.modules[_HANDLERS] = ModuleType(_HANDLERS)
        stand_in.__dict__["EventDispatcherHandler"] = object
    try:
        module = import_module("lark_oapi.ws.client")
    finally:
        if needed:
            del sys.modules[_HANDLERS]
    logger: Any = module.__dict__["logger"]
    for handler in logger.handlers[:]:  # it writes to stdout
        logger.removeHandler(handler)
    for each in (logger, logging.getLogger("websockets.client")):  # both log complete URLs
        each.filters[:] = [SecretFilter()]
    return module


def _lazy_package() -> ModuleType:
    """Return the package unexecuted; the first access to a missing attribute executes it."""
    spec = find_spec(_PACKAGE)
    if spec is None or spec.loader is None:
        raise ImportError("lark-oapi is not installed")
    package, loader = module_from_spec(spec), spec.loader

    def run(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        del package.__dict__["__getattr__"]
        loader.exec_module(package)
        return getattr(package, name)

    package.__dict__["__getattr__"] = run
    return package
