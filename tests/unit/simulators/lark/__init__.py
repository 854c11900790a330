"""The modules of the Lark simulator, without a network."""

from collections.abc import Mapping

from internal.simulators.lark.faults import Faults
from internal.simulators.lark.model import App
from internal.simulators.lark.rest.call import RestCall
from internal.simulators.lark.services import LarkServices
from internal.simulators.lark.state import LarkState
from internal.simulators.lark.websocket.connection import ClientConfig

APP = App("cli_unit", "secret")


def make_services(**faults: object) -> LarkServices:
    services = LarkServices([APP], Faults(), ClientConfig())
    services.switch({"limits": False, **faults})
    return services


def make_state() -> LarkState:
    return make_services().state


def make_call(body: Mapping[str, object] | None = None, **path: str) -> RestCall:
    return RestCall(APP, path, {}, dict(body or {}))
