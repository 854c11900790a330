"""Replies of the scripted model of the browser tests."""

from tests.support.anthropic_server import Call, Reply, When

GOAL = "Write the weekly report"
STEPS = ["Collect the numbers", "Write the report"]
ANSWER = """\
Two of three rivals **cut their prices** this week.

| company | change |
|---|---|
| Alpha | -8 % |
| Beta | -3 % |
| Gamma | none |

- Alpha follows the spring sale.
- Beta says it is for good.

```python
print(sum([8, 3, 0]) / 3)
```
"""


def report() -> list[Reply]:
    """A plan, a remark with a tool, another tool, and an answer that stops in the middle."""

    def when(results: int) -> When:
        return When(last_user="report", results=results)

    def mark(step: str, status: str) -> Call:
        return Call("update_plan", {"step_id": step, "status": status})

    numbers = "printf 'alpha 8\\nbeta 3\\ngamma 0\\n' > numbers.txt"
    return [
        Reply(calls=[Call("plan", {"goal": GOAL, "steps": STEPS})], when=when(0)),
        Reply(
            text="First I collect the numbers.",
            pieces=5,
            packets="each",
            calls=[Call("shell", {"command": numbers})],
            when=when(1),
        ),
        Reply(
            calls=[Call("read_file", {"path": "numbers.txt"}), mark("1", "completed")], when=when(2)
        ),
        Reply(
            calls=[Call("read_file", {"path": "prices.txt"}), mark("2", "in_progress")],
            when=when(4),
        ),
        Reply(
            text=ANSWER,
            pieces=40,
            packets="each",
            hold="answer",
            after_pieces=22,
            usage={"input_tokens": 12_400, "output_tokens": 1_800},
            when=when(6),
        ),
    ]


def title() -> Reply:
    """Return the reply to all other requests."""
    return Reply(text="Noted.")
