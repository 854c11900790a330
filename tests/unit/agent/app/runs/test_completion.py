"""The result of a run."""

from internal.agent.app.runs.completion import summarize
from internal.agent.domain.messages import user_message
from internal.agent.domain.react.steps import TurnOutcome
from internal.agent.domain.usage import Usage
from tests.support.store_records import T1, a_task


def test_a_run_without_a_turn_leaves_its_instruction_and_its_error() -> None:
    task = a_task(instruction="count\nto ten")
    result = summarize(task, None, TurnOutcome("error", "", "no key"), T1)
    assert result.end.status == "failed"
    assert (result.end.error, result.end.usage, result.end.cost) == ("no key", Usage(), None)
    assert result.end.ended == T1
    assert [*result.messages] == [user_message(task.instruction)]
    assert result.usage == {}
    assert result.title == "count"
    assert not result.silent
