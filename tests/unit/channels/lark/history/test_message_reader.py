"""Messages as Lark's message API returns them."""

import pytest

from internal.channels.lark.history.message_reader import past_message


@pytest.mark.parametrize("created", ["", "soon", "17e11", "999999999999999"])
def test_an_implausible_time_is_no_time(created: str) -> None:
    item = {"message_id": "om_1", "msg_type": "text", "create_time": created}
    assert past_message(item, "cli_a").sent_at is None
