"""The table of endings."""

from typing import get_args

from internal.agent.capabilities.endings import ENDINGS, AttemptEnd
from internal.agent.domain.react.steps import AwaitTasks, Pause


def test_each_end_of_an_attempt_has_its_answers() -> None:
    assert set(ENDINGS) == set(get_args(AttemptEnd))


def test_a_run_that_goes_on_later_keeps_its_checkpoint_and_its_process() -> None:
    stay = {each for each, ending in ENDINGS.items() if ending.departure is None}
    assert stay == {Pause, AwaitTasks}
    assert not any(ENDINGS[each].drops_checkpoint for each in stay)
