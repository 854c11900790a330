"""RunContext: the one value that says which run this is, for whom, under which rules."""

from dataclasses import dataclass

from internal.agent.app.events.writer import SerializingEventListener
from internal.agent.domain.events.envelope import RunIds
from internal.agent.domain.tasks import Run, Task


@dataclass(frozen=True, slots=True)
class RunContext:
    """What every stage is handed. `begun` is monotonic seconds at the start of this attempt."""

    ids: RunIds
    run: Run
    task: Task
    stream: SerializingEventListener
    begun: float
