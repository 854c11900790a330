import pytest

from internal.simulators.lark.control.actions import (
    ACTIONS,
    CreateRequest,
    DurationRequest,
    SendTextRequest,
)
from internal.simulators.lark.user_actions import ActionError
from tests.unit.simulators.lark import make_services


async def test_actions_change_the_state() -> None:
    services = make_services()
    person = (await ACTIONS["person"].do(services, CreateRequest("Ada")))["open_id"]
    chat = (await ACTIONS["group"].do(services, CreateRequest("Team", [person])))["chat_id"]
    sent = await ACTIONS["send"].do(services, SendTextRequest(person, chat, "hi"))
    assert services.state.messages[sent["message_id"]].chat_id == chat
    with pytest.raises(ActionError):
        await ACTIONS["group"].do(services, CreateRequest("x", ["ou_unknown"]))


@pytest.mark.parametrize("seconds", [-1, float("nan"), 367 * 86_400])
def test_durations_are_limited_to_a_year(seconds: float) -> None:
    with pytest.raises(ValueError, match="366 days"):
        DurationRequest(seconds)


@pytest.mark.parametrize("name", ["", " ", "x" * 61])
def test_names_have_a_length_limit(name: str) -> None:
    with pytest.raises(ValueError, match="60"):
        CreateRequest(name)
