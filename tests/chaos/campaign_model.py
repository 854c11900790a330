"""The model of a campaign: a pure function of the request, like `model_script`.

A task is named by a letter and digits (`task W12`); the letter chooses the replies. Each side
effect writes a line with the name of its task, so that a repeated one is seen.
"""

import re
from collections.abc import Sequence
from typing import Any

from tests.chaos.model_script import note, plan
from tests.support.scripted_model import Call, Reply, encode

LETTERS = "WQPSL"
LAST = "Z"
"""The last task of a session. Its request shows the memory of the model."""

MARK = re.compile(r"\btask ([A-Z])(\d+)\b")


def final(name: str) -> Reply:
    return Reply(text=f"All of {name} is done, as was asked.", pieces=8, packets="each")


def steps(letter: str, name: str) -> Sequence[Reply]:
    """Return the replies of a task, in order."""
    reading = [Call("list_dir", {}), Call("read_file", {"path": "notes.txt"})]
    match letter:
        case "W":  # writes, beside calls that may be repeated
            work = [
                Reply(text="First a plan.", calls=[plan("write")]),
                Reply(calls=[note(f"{name}.1"), *reading]),
                Reply(calls=[*reading, note(f"{name}.2"), note(f"{name}.3")]),
            ]
        case "Q":  # asks a question
            ask = Call("request_user", {"question": f"Which colour for {name}?"})
            work = [
                Reply(calls=[plan("ask")]),
                Reply(calls=[ask]),
                Reply(calls=[note(f"{name}.1")]),
            ]
        case "P":  # needs an approval
            work = [Reply(calls=[plan("write")]), Reply(calls=[note(f"{name}.1"), *reading])]
        case "S":  # a slow reply
            slow = Reply(text="word " * 200, pieces=60, packets="each", calls=[plan("write")])
            work = [slow, Reply(calls=[note(f"{name}.1")], delay_seconds=0.5)]
        case "L":  # many small steps
            work = [Reply(calls=[plan("look")]), *[Reply(calls=reading)] * 6]
            work += [Reply(calls=[note(f"{name}.{number}")]) for number in range(3)]
        case "T":  # in a terminal
            work = [Reply(calls=[plan("write")]), Reply(calls=[note(f"{name}.1")])]
        case _:
            work = []
    return [*work, final(name)]


class CampaignModel:
    """The script of the model server. It records the last request of each session."""

    def __init__(self) -> None:
        self.last_requests: dict[str, str] = {}

    def __call__(self, request: dict[str, Any]) -> Reply:
        """Return the reply to a request."""
        letter, name, given = "", "", 0
        for message in request["messages"]:
            content = message["content"]
            words = content if isinstance(content, str) else encode(content).decode()
            if message["role"] == "user" and (marks := MARK.findall(words)):
                letter, name, given = marks[-1][0], "".join(marks[-1]), 0
            given += bool(message.get("tool_calls"))
        if letter == LAST:
            self.last_requests[name] = str(request["messages"])
        row = steps(letter, name)
        return row[min(given, len(row) - 1)]
