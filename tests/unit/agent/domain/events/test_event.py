"""The base class of events."""

from internal.agent.domain.events.event import Event


def test_an_event_has_no_node_by_default() -> None:
    assert Event().node() is None
