"""Input files: the attachments of messages, as the model sees them."""

from collections.abc import Sequence
from functools import partial
from itertools import zip_longest

from internal.agent.app.files.input_files import (
    InputFiles,
    MessageFile,
    file_parts,
    file_problems,
    stored_files,
)
from internal.agent.app.runs.context import RunContext, RunServices, create_workspace
from internal.agent.capabilities.capability import Capability, ReceivedParts, UserMessage
from internal.agent.domain.events.types import Event, InputFilesFetched
from internal.agent.domain.messages import Text
from internal.agent.domain.react.history import History
from internal.agent.domain.tasks import Task


class InputFilesCapability(Capability):
    """Puts the files of messages into the workspace and shows them to the model."""

    name = "input files"

    def __init__(self, services: RunServices, input_files: InputFiles) -> None:
        self._services, self._input_files = services, input_files

    async def receive(self, run: RunContext, message: UserMessage, /) -> ReceivedParts:
        """Return the files of a message, and why some cannot be used.

        Raises:
            StoreUnavailable: the store cannot be used now.
        """
        await create_workspace(self._services, run)
        session_id, attachments = run.task.session_id, message.attachments
        files = await self._input_files.add(session_id, message.workspace, attachments)
        fetched, answer = list[Event](), ""
        if message.earlier is not None:
            fetched = await self._keep_fetched(run.task, files)
            words = partial(_earlier_words, message.earlier)
            files, answer = self._input_files.explain_unheard(files, message.text, words)
        events = (*fetched, *file_problems(files))
        return ReceivedParts(file_parts(files), stored_files(files), events, answer)

    async def _keep_fetched(self, task: Task, files: Sequence[MessageFile]) -> list[Event]:
        """Store the fetched files with the task; another run of it does not fetch them again."""
        if all(each.is_stored for each in task.attachments):
            return []
        stored = (file.attachment for file in files[: len(task.attachments)])
        attachments = tuple(new or old for old, new in zip_longest(task.attachments, stored))
        work = partial(self._services.stores.tasks.set_attachments, task.id, attachments)
        await self._services.database.write(work)
        return [InputFilesFetched(attachments=stored_files(files))]


def _earlier_words(history: History) -> list[str]:
    """Return the texts of people, newest first. The last text of a message follows its files."""
    messages = history.messages
    texts = ([part.text for part in each.parts if isinstance(part, Text)] for each in messages)
    written = zip(messages, texts, strict=True)
    return [found[-1] for each, found in written if each.role == "user" and found][::-1]
