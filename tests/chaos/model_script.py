"""The replies of the model: a pure function of the request, so that a resumed run gets the same.

A task is named by a letter in its text (`task A`) and has a sequence of replies. The request itself
shows how many of them were given.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.support.scripted_model import Call, Reply, encode

MARK = re.compile(r"\btask ([A-Z])\b")
STEERED = "steered"
"""The hold that delays the first reply of task A until the user has tried to steer."""

Steps = Mapping[str, Sequence[Reply]]


def plan(*steps: str) -> Call:
    return Call("plan", {"goal": "to get it done", "steps": list(steps)})


def note(line: str) -> Call:
    """Return a call with a side effect: running it twice writes two lines."""
    return Call("shell", {"command": f"echo {line} >> ledger.txt"})


def final(letter: str) -> Reply:
    return Reply(text=f"All of {letter} is done, as was asked.", pieces=8, packets="each")


STEPS: Steps = {
    "A": (
        Reply(text="First a plan.", calls=[plan("write", "look")], hold=STEERED),
        Reply(text="Now I write.", thinking="one line", calls=[note("A1")]),
        Reply(
            calls=[
                Call("list_dir", {}),
                Call("read_file", {"path": "notes.txt"}),
                note("A2"),
                Call("search_files", {"pattern": "note"}),
                Call("update_plan", {"step_id": "1", "status": "completed"}),
            ]
        ),
        Reply(calls=[Call("update_plan", {"step_id": "2", "status": "completed"})]),
        final("A"),
    ),
    "B": (Reply(calls=[plan("write")]), Reply(calls=[note("B1")]), final("B")),
    "C": (final("C"),),
}


def scripted_model(steps: Steps) -> Callable[[dict[str, Any]], Reply]:
    """Return the function from a request to the reply."""

    def reply(request: dict[str, Any]) -> Reply:
        letter, given = "", 0
        for message in request["messages"]:
            content = message["content"]
            words = content if isinstance(content, str) else encode(content).decode()
            if message["role"] == "user" and (marks := MARK.findall(words)):
                letter, given = marks[-1], 0
            given += bool(message.get("tool_calls"))
        row = steps[letter]
        return row[min(given, len(row) - 1)]

    return reply
