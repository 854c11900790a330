"""The interface to a chat service."""

from internal.channels.chat.transport import TransportRejected, TransportUnavailable, recall_id
from internal.channels.lark.api import LarkRejected, LarkUnavailable


def test_an_unavailable_service_may_be_tried_again_at_once_by_default() -> None:
    error = TransportUnavailable("busy")
    assert (str(error), error.wait, error.unconfirmed) == ("busy", 0.0, False)


def test_the_errors_of_lark_are_errors_of_the_interface() -> None:
    assert isinstance(LarkRejected(1, "no"), TransportRejected)
    assert isinstance(LarkUnavailable("busy", 2.0), TransportUnavailable)


def test_a_recall_has_an_id_of_its_own() -> None:
    assert recall_id("m1") == "recall:m1"
