"""What runs say on every channel: waits for the model, and why a run ended or cannot continue.

Standard library only: the terminal imports this at start-up.
"""

from internal.i18n.catalog import MessageCatalog, load_catalog
from internal.i18n.language import Language

MIN_TIMED_SECONDS = 10
"""The shortest wait for a model of which the end is shown as a time of day."""
_UNREMARKABLE = {"final_answer", "await_user_input", "await_tasks", "user_stop"}


def end_of_wait(since: str, seconds: int) -> str:
    """Return when a wait ends that began at an RFC 3339 instant, in the time of this machine.

    "" if the instant is none. The zone is named only if it is UTC, in which few people live.
    """
    from datetime import datetime, timedelta  # noqa: PLC0415  # costs the terminal an import

    try:
        end = (datetime.fromisoformat(since) + timedelta(seconds=seconds)).astimezone()
    except ValueError:
        return ""
    return f"{end:%H:%M:%S}{' UTC' if end.tzname() == 'UTC' else ''}"


class RunMessages(MessageCatalog):
    """The sentences about runs in one language; the page loads the same files."""

    def __init__(self, language: Language) -> None:
        super().__init__("runs", language)
        self._complete = frozenset(load_catalog("runs", language)["complete"])

    def retry(self, reason: str, seconds: int, attempt: int, since: str = "") -> str:
        """Return that the model is asked again in so many seconds, and when that is.

        `since` is the RFC 3339 instant at which the wait began; "" leaves out its end, which a
        short wait does not need.
        """
        key = f"retry_{reason}"
        sentence = self(
            key if key in self else "retry_overloaded", seconds=seconds, attempt=attempt
        )
        end = end_of_wait(since, seconds) if seconds >= MIN_TIMED_SECONDS else ""
        return self("retry_until", sentence=sentence, time=end) if end else sentence

    def answered_by(self, model: str, instead_of: str) -> str:
        """Return that another model than the chosen one wrote the answer."""
        return self("answered_by", model=model, instead_of=instead_of)

    def ended(self, stop_reason: str, error_code: str = "") -> str:
        """Return why a run ended, "" if it has its answer or was stopped by a person.

        A code that this version does not know has a general sentence.
        """
        if not error_code and stop_reason in _UNREMARKABLE:
            return ""
        keys = (f"ended_{error_code}", f"ended_{stop_reason}", "ended_error")
        return self(next(key for key in keys if key in self))

    def left_out(self, what: str, count: int, tool_name: str = "") -> str:
        """Return what a request was sent without, as a sentence."""
        plural = f"left_out_{what}_many"
        key = plural if count != 1 and plural in self else f"left_out_{what}"
        return self(key, count=count, name=tool_name)

    def details(self, stop_reason: str, error_code: str, error: str) -> str:
        """Return what `error` adds to the sentence, such as the words of the provider."""
        return "" if (error_code or stop_reason) in self._complete else error

    def question_title(self, title: str, reason_code: str) -> str:
        """Return the title of a question; of one about a run that cannot continue, the reason."""
        return self.ended("error", reason_code) if reason_code else title
