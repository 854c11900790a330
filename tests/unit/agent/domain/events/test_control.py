"""Control frames."""

from typing import Any

from internal.agent.domain.events.control import CONTROLS, ControlFrame


def all_below(kind: type[Any]) -> set[type[Any]]:
    return {each for sub in kind.__subclasses__() for each in {sub, *all_below(sub)}}


def test_every_control_frame_is_listed_in_controls() -> None:
    ours = {each for each in all_below(ControlFrame) if each.__module__.startswith("inter")}
    assert set(CONTROLS) == ours
