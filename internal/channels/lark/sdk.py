"""Lark's own websocket client, without the 10,000 modules of REST models that stand beside it.

`import lark_oapi` costs 5 seconds and 170 MB, nearly all of it for models of calls that we do not
make. The client itself, `lark_oapi/ws/client.py`, is used unmodified; of the package it needs the
name alone, and one class for an annotation. So the package is there without having been run; it is
run when somebody asks it for anything.
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
    """Lets the client's records through without the secrets of its addresses.

    What it says of a lost connection is left out: the supervisor says it, with the reason.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite a record; False for one that is not to be seen."""
        text = record.getMessage()
        record.msg, record.args = _SECRETS.sub(r"\1•••", text), ()
        return not text.startswith(("receive message loop exit", "ping failed"))


def load_websocket_client() -> ModuleType:
    """Return `lark_oapi.ws.client`. Its variable `loop` says where its clients run.

    Raises:
        ImportError: lark-oapi is not installed, or is another version than the pinned one.
    """
    if _PACKAGE not in sys.modules:
        sys.modules[_PACKAGE] = _not_run_yet()
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
    for handler in logger.handlers[:]:  # it writes to stdout, which is not ours to fill
        logger.removeHandler(handler)
    for each in (logger, logging.getLogger("websockets.client")):  # both tell whole addresses
        each.filters[:] = [SecretFilter()]
    return module


def _not_run_yet() -> ModuleType:
    """Return the package with its submodules in reach; its first attribute asked for runs it."""
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
