"""Whom the reply of a run notifies."""

import msgspec

from internal.agent.app.mentions import MAX_MENTIONS, mentioned_people


def test_the_first_five_people_are_mentioned_once_and_in_order() -> None:
    events = [
        msgspec.json.encode({"payload": {"people": people, "names": people}})
        for people in (["b", "a"], ["a", "c"], ["d", "e", "f"])
    ]
    assert mentioned_people(events) == ("b", "a", "c", "d", "e")
    assert len(mentioned_people(events)) == MAX_MENTIONS
    assert mentioned_people([]) == ()
