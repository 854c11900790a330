"""Sentences about runs on every channel: waits for the model, and reasons for ends and obstacles.

Standard library only: the terminal imports this at start-up.
"""

from collections.abc import Mapping
from typing import Any

from internal.i18n.catalog import MessageCatalog, load_catalog
from internal.i18n.language import Language

MIN_TIMED_SECONDS = 10
"""The shortest wait for a model whose end is shown as a time of day."""
_DAILY_LIMIT = "ended_daily_limit_exceeded"
_UNREMARKABLE = {"final_answer", "await_user_input", "await_tasks", "user_stop"}


def end_of_wait(since: str, seconds: int) -> str:
    """Return when a wait ends that began at an RFC 3339 instant, in the time of this machine.

    "" if the instant is invalid. The zone is named only if it is UTC, in which few people live.
    """
    from datetime import datetime, timedelta  # noqa: PLC0415  # costs the terminal an import

    try:
        end = (datetime.fromisoformat(since) + timedelta(seconds=seconds)).astimezone()
    except ValueError:
        return ""
    return f"{end:%H:%M:%S}{' UTC' if end.tzname() == 'UTC' else ''}"


def _daily_reset() -> str:
    from datetime import UTC, datetime  # noqa: PLC0415  # costs the terminal an import

    from internal.normal_forms.time_zones import format_daily_reset  # noqa: PLC0415  # the same

    return format_daily_reset(datetime.now(UTC))


class RunMessages(MessageCatalog):
    """The sentences about runs in one language; the page loads the same files."""

    def __init__(self, language: Language) -> None:
        super().__init__("runs", language)
        catalog = load_catalog("runs", language)
        self._complete, self._limits = frozenset(catalog["complete"]), frozenset(catalog["limits"])
        self._key_codes = frozenset(catalog["key_codes"])

    def retry(self, wait: Mapping[str, Any], since: str = "") -> str:
        """Return that the model is asked again, when, for which of how many times, and why.

        Args:
            wait: the fields of `workflow.node.retry`. Without `attempts`, as in events of earlier
                versions, it has only the number of the attempt.
            since: the RFC 3339 instant at which the wait began; "" leaves out its end, which a
                short wait does not need.
        """
        key, seconds = f"retry_{wait['reason']}", wait["seconds"]
        attempts, cause = wait.get("attempts", 0), wait.get("cause", "")
        attempt = self(
            "attempt_of" if attempts else "attempt", attempt=wait["attempt"], attempts=attempts
        )
        sentence = self(
            key if key in self else "retry_overloaded", seconds=seconds, attempt=attempt
        )
        end = end_of_wait(since, seconds) if seconds >= MIN_TIMED_SECONDS else ""
        if end:
            sentence = self("retry_until", sentence=sentence, time=end)
        return self("retry_because", sentence=sentence, cause=cause) if cause else sentence

    def call_failure(self, metadata: Mapping[str, Any]) -> str:
        """Return how a command failed that could be run, such as `exit 3`; "" if it did not."""
        if metadata.get("timed_out"):
            return self("call_timed_out")
        code = metadata.get("exit_code")
        return self("call_exit", code=code) if code else ""

    def call_remarks(self, metadata: Mapping[str, Any]) -> list[str]:
        """Return remarks on a call: questions that were declined unasked, and logged errors."""
        found = {key: metadata.get(key) or () for key in ("declined", "logged")}
        return [
            self(f"call_{key}", reason="; ".join(map(str, reasons)))
            for key, reasons in found.items()
            if reasons
        ]

    def is_limit(self, stop_reason: str) -> bool:
        """Return True if a run ended at a limit: it did not fail, and can go on."""
        return stop_reason in self._limits

    def exception(self, status: str, stop_reason: str | None, calls_not_run: int = 0) -> str:
        """Return the exception to a status: the run ended at a limit, or without its last calls.

        "" if its status says all. Every place that shows the state of a run or task uses this.
        """
        if stop_reason is not None and self.is_limit(stop_reason):
            return self(f"limit_reached_{stop_reason}")
        return self.completed(calls_not_run) if calls_not_run and status == "completed" else ""

    def cost_limit(
        self, model: str, max_cost: float | None, max_tokens: int | None, *, is_priced: bool
    ) -> str:
        """Return a sentence if the limit in US dollars does not apply to a model, "" otherwise.

        `max_tokens` is the limit that applies instead, None if there is none.
        """
        if is_priced or max_cost is None:
            return ""
        cost = f"${max_cost:.2f}"
        if max_tokens is None:
            return self("no_price_no_limit", model=model, cost=cost)
        return self("no_price", model=model, cost=cost, tokens=f"{max_tokens:,}")

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
        key = next(key for key in keys if key in self)
        return self(key, time=_daily_reset()) if key == _DAILY_LIMIT else self(key)

    def refusal(self, metadata: Mapping[str, Any]) -> str:
        """Return why the answer of a person did not allow a call, "" if there was none."""
        key = f"refused_{metadata.get('refusal')}"
        if key not in self:
            return ""
        words = str(metadata.get("words") or "")
        return f"{self(key)}: {words}" if words else self(key)

    def needs_key(self, error_code: str) -> bool:
        """Return True if another key of the model may help."""
        return error_code in self._key_codes

    def key_hint(self, error_code: str, page: str = "") -> str:
        """Return where the owner enters another key, "" if none would help.

        `page` is the address of its field, "" if no page is served.
        """
        if not self.needs_key(error_code):
            return ""
        return self("key_hint_page", page=page) if page else self("key_hint")

    def unwritten(self, kind: str) -> str:
        """Return the text for people in place of a message that nobody wrote."""
        return self(f"unwritten_{kind}")

    def not_run(self, reason: str) -> str:
        """Return why a call was not run; a reason that this version does not know is a rule."""
        key = f"not_run_{reason}"
        return self(key if key in self else "not_run_gate")

    def completed(self, calls_not_run: int) -> str:
        """Return that a run is completed, and how many of its last calls were not run."""
        if not calls_not_run:
            return self("completed")
        key = "completed_not_run" if calls_not_run == 1 else "completed_not_run_many"
        return self(key, count=calls_not_run)

    def step_remarks(self, step: Mapping[str, Any], *, is_over: bool) -> list[str]:
        """Return remarks on a step of a plan besides its description and status.

        `is_over`: the run has ended, so that a step without a report will not get one.
        """
        remarks: list[str] = []
        if is_over and step["status"] in {"pending", "in_progress"}:
            remarks.append(self("step_not_reported"))
        if step.get("opened_by") == "larkspur":
            remarks.append(self("step_by_larkspur"))
        if criteria := "; ".join(step.get("success_criteria", "").splitlines()):
            remarks.append(self("step_criteria", criteria=criteria))
        return remarks

    def left_out(self, what: str, count: int, tool_name: str = "") -> str:
        """Return a sentence about the parts that a request was sent without."""
        plural = f"left_out_{what}_many"
        key = plural if count != 1 and plural in self else f"left_out_{what}"
        return self(key, count=count, name=tool_name)

    def call_stopped(self, metadata: Mapping[str, Any], reader: str = "") -> str:
        """Return the cause that stopped a call, by the metadata of its end; "" if nothing did.

        `reader` is the principal who reads it.
        """
        cause, name = metadata.get("stopped"), metadata.get("stopped_by")
        if cause == "person" and reader and metadata.get("stopped_by_id") == reader:
            return self("call_stopped_by_you")
        if cause == "person" and name:
            return self("call_stopped_by", name=name)
        key = f"call_stopped_{cause}"
        return self(key) if key in self else ""

    def details(self, stop_reason: str, error_code: str, error: str) -> str:
        """Return the details that `error` adds to the sentence, such as a provider's message."""
        return "" if (error_code or stop_reason) in self._complete else error

    def question_title(self, title: str, reason_code: str) -> str:
        """Return the title of a question; of one about a run that cannot continue, the reason."""
        return self.ended("error", reason_code) if reason_code else title
