"""An open question: the keys that answer it, and the draft of an answer in the input buffer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

AnswerJson = Mapping[str, Any]
"""The body of `POST /api/questions/{id}/answer`."""

Drafting = Literal["", "because", "rules", "steps"]
"""Content of the input buffer: no part of the answer, a reason, rules, or the steps of a plan."""

ENTER = "enter"
_MAX_DIGIT_KEYS = 9
"""Options and calls beyond this have no key."""


class OpenQuestion:
    """A question as `GET /api/questions/{id}` returns it, and the state of its answer."""

    def __init__(self, view: Mapping[str, Any]) -> None:
        self.view = view
        self.id: str = view["question_id"]
        self.run_id: str = view["run_id"]
        self.kind: str = view["kind"]
        self.title = str(view.get("title") or "")
        self.asked_by = str(view.get("asked_by") or "")
        self.reason_code = str(view.get("reason_code") or "")
        self.calls: Sequence[Mapping[str, Any]] = view.get("calls") or ()
        self.options: Sequence[str] = view.get("options") or ()
        self.multiple = bool(view.get("multiple"))
        self.selected: set[int] = set()
        """The numbers of the selected options or calls."""
        self.drafting: Drafting = ""
        self.answer: AnswerJson | None = None
        """The answer, if someone else gave one while ours was on its way."""

    @property
    def has_rules(self) -> bool:
        """True if rules may allow every call of the question."""
        return self.kind == "approval" and all(call.get("rules") for call in self.calls)

    @property
    def digits(self) -> int:
        """The number of digit keys in use."""
        count = len(self.options)
        if self.kind == "approval":
            count = len(self.calls) if len(self.calls) > 1 else 0
        return min(count, _MAX_DIGIT_KEYS)

    @property
    def keys(self) -> Sequence[str]:
        """The keys that answer the question while the input is empty."""
        if self.drafting:
            return ()
        letters = {"plan": "yne", "clarify": "", "recovery": "yn"}
        approval = "yapne" if self.has_rules else "yne"
        return (*letters.get(self.kind, approval), *(str(n + 1) for n in range(self.digits)))

    def denied_calls(self, answer: AnswerJson) -> set[str]:
        """Return the ids of the calls that an answer denies."""
        items, yes = answer.get("items") or {}, answer["decision"] == "approve"
        ids = (str(call["call_id"]) for call in self.calls)
        return {call_id for call_id in ids if not items.get(call_id, yes)}

    def is_final_key(self, key: str) -> bool:
        """Return True if a key answers at once, so it must not be the first letter of a word."""
        return self.kind != "approval" or key in "yan"

    def press(self, key: str) -> AnswerJson | str | None:
        """Handle a key. Return an answer, a text to edit, or None if the selection changed."""
        if key == ENTER:
            return self._confirm_selection()
        return self._select(int(key)) if key.isdecimal() else self._handle_letter(key)

    def answer_from(self, text: str, read_steps: Callable[[str], Sequence[str]]) -> AnswerJson:
        """Return the answer for the edited text."""
        match self.drafting:
            case "rules":
                lines = [line.strip() for line in text.splitlines() if line.strip()]
                return {"decision": "approve", "grant": "rule", "rules": lines}
            case "steps":
                steps = list(read_steps(text))
                if steps == self._steps():
                    return {"decision": "approve"}
                return {"decision": "edit", "edit": {"steps": steps}}
            case _:
                return {"decision": "reject", "text": text.strip()}

    def _handle_letter(self, key: str) -> AnswerJson | str:
        match key:
            case "a":
                return {"decision": "approve", "grant": "session"}
            case "p":
                self.drafting = "rules"
                rules = (rule for call in self.calls for rule in call["rules"])
                return "\n".join(dict.fromkeys(rules))
            case "e" if self.kind == "plan":
                self.drafting = "steps"
                return "\n".join(f"{n}. {text}" for n, text in enumerate(self._steps(), 1))
            case "e":
                self.drafting = "because"
                return ""
            case _:
                return {"decision": "approve" if key == "y" else "reject"}

    def _steps(self) -> list[str]:
        steps = (self.view.get("plan") or {}).get("steps", ())
        return [" ".join(str(step["description"]).split()) for step in steps]

    def _select(self, number: int) -> AnswerJson | None:
        if self.kind == "clarify" and not self.multiple:
            return {"decision": "text", "choices": [number]}
        self.selected ^= {number}
        return None

    def _confirm_selection(self) -> AnswerJson | None:
        if not self.selected:
            return None
        if self.kind == "clarify":
            return {"decision": "text", "choices": sorted(self.selected)}
        items = {call["call_id"]: n in self.selected for n, call in enumerate(self.calls, 1)}
        return {"decision": "approve", "items": items}
