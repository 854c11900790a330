"""`larkspur watch`."""

import json

from tests.support.command_runner import CommandRunner


def test_ended_task_is_shown_to_its_end(run: CommandRunner) -> None:
    task = run.ask("what is 6*7")

    watched = run.local("watch", task["task_id"])

    assert watched.code == 0
    assert "what is 6*7" in watched.out
    assert "42" in watched.out


def test_json_prints_one_event_per_line(run: CommandRunner) -> None:
    task = run.ask("what is 6*7")

    watched = run.local("watch", task["task_id"], "--json")

    events = [json.loads(line)["event"] for line in watched.out.splitlines()]
    assert events[-1]["event"] == "workflow.result.final"
    assert {event["task_id"] for event in events} == {task["task_id"]}
