"""What runs say on every channel: waits for the model, and why a run ended or cannot continue.

Standard library only: the terminal imports this at start-up.
"""

from internal.i18n.catalog import MessageCatalog, load_catalog
from internal.i18n.language import Language

_UNREMARKABLE = {"final_answer", "await_user_input", "await_tasks", "user_stop"}


class RunMessages(MessageCatalog):
    """The sentences about runs in one language; the page loads the same files."""

    def __init__(self, language: Language) -> None:
        super().__init__("runs", language)
        self._complete = frozenset(load_catalog("runs", language)["complete"])

    def retry(self, reason: str, seconds: int, attempt: int) -> str:
        """Return that the model is asked again in so many seconds."""
        return self(f"retry_{reason}", seconds=seconds, attempt=attempt)

    def ended(self, stop_reason: str, error_code: str = "") -> str:
        """Return why a run ended, "" if it has its answer or was stopped by a person.

        A code that this version does not know has a general sentence.
        """
        if not error_code and stop_reason in _UNREMARKABLE:
            return ""
        keys = (f"ended_{error_code}", f"ended_{stop_reason}", "ended_error")
        return self(next(key for key in keys if key in self))

    def details(self, stop_reason: str, error_code: str, error: str) -> str:
        """Return what `error` adds to the sentence, such as the words of the provider."""
        return "" if (error_code or stop_reason) in self._complete else error

    def question_title(self, title: str, reason_code: str) -> str:
        """Return the title of a question; of one about a run that cannot continue, the reason."""
        return self.ended("error", reason_code) if reason_code else title
