"""Summarizing: what a run was, in numbers and a title. It never changes the result."""

from internal.agent.app.ending import Ending
from internal.agent.app.titles import one_line
from internal.agent.domain.budgets import Usage
from internal.agent.domain.messages import Message, said_by_user
from internal.agent.domain.moves import Outcome
from internal.agent.domain.tasks import STATUS_OF, Task
from internal.agent.domain.turn import Turn
from internal.agent.ports.runs import RunEnd


def summary(task: Task, turn: Turn | None, outcome: Outcome, ended: str) -> Ending:
    """Return how the run ends and what it leaves; without a Turn it did not get that far."""
    said: list[Message] = [said_by_user(task.instruction)] if turn is None else turn.work()
    spent = {} if turn is None else turn.spent
    end = RunEnd(
        status=STATUS_OF[outcome.stop_reason],
        stop_reason=outcome.stop_reason,
        usage=sum((each.usage for each in spent.values()), Usage()),
        cost=None if turn is None else turn.cost,
        answer=outcome.answer,
        error=outcome.error,
        ended=ended,
    )
    return Ending(
        end=end,
        messages=said,
        used={model: (each.usage, each.cost) for model, each in spent.items()},
        title=one_line(task.instruction),
    )
