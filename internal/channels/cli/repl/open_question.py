"""One open question at the prompt: what a key does to it, and what stands in the box for it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

AnswerJson = Mapping[str, Any]
"""An answer as JSON, as `POST /api/questions/{id}/answer` takes it."""

Drafting = Literal["", "because", "rules", "steps"]
"""What is being written in the box: nothing for the question, a reason, rules, a plan's steps."""

ENTER = "enter"
_DIGITS = 9
"""So many options and calls have a key of their own."""


class OpenQuestion:
    """A question as `GET /api/questions/{id}` shows it, and how far a person is with its answer."""

    def __init__(self, view: Mapping[str, Any]) -> None:
        self.view = view
        self.id: str = view["question_id"]
        self.run_id: str = view["run_id"]
        self.kind: str = view["kind"]
        self.calls: Sequence[Mapping[str, Any]] = view.get("calls") or ()
        self.options: Sequence[str] = view.get("options") or ()
        self.multiple = bool(view.get("multiple"))
        self.marked: set[int] = set()
        """The numbers of the options or calls that are chosen so far."""
        self.writing: Drafting = ""
        self.answer: AnswerJson | None = None
        """What it was answered, by whomever."""

    @property
    def takes_words(self) -> bool:
        """Say whether any words are an answer to it."""
        return self.kind != "approval"

    @property
    def ruled(self) -> bool:
        """Say whether rules may allow all that it asks for."""
        return self.kind == "approval" and all(call.get("rules") for call in self.calls)

    @property
    def digits(self) -> int:
        """Return how many number keys mean something."""
        count = len(self.options)
        if self.kind == "approval":
            count = len(self.calls) if len(self.calls) > 1 else 0
        return min(count, _DIGITS)

    @property
    def keys(self) -> Sequence[str]:
        """The keys that mean something while the box is empty."""
        if self.writing:
            return ()
        letters = {"plan": "yne", "clarify": "", "approval": "yapne" if self.ruled else "yne"}
        return (*letters.get(self.kind, ""), *(str(n + 1) for n in range(self.digits)))

    def refused(self, answer: AnswerJson) -> set[str]:
        """Return the calls that an answer says no to."""
        items, yes = answer.get("items") or {}, answer["decision"] == "approve"
        ids = (str(call["call_id"]) for call in self.calls)
        return {call_id for call_id in ids if not items.get(call_id, yes)}

    def decides(self, key: str) -> bool:
        """Say whether a key does what cannot be undone: it must not be the start of a word."""
        return self.kind != "approval" or key in "yan"

    def press(self, key: str) -> AnswerJson | str | None:
        """Take a key: an answer comes of it, a text for the box, or None: a mark was moved."""
        if key == ENTER:
            return self._marks()
        return self._number(int(key)) if key.isdecimal() else self._letter(key)

    def written(self, text: str, read_steps: Callable[[str], Sequence[str]]) -> AnswerJson:
        """Return the answer that stands in the box."""
        match self.writing:
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

    def _letter(self, key: str) -> AnswerJson | str:
        match key:
            case "a":
                return {"decision": "approve", "grant": "session"}
            case "p":
                self.writing = "rules"
                rules = (rule for call in self.calls for rule in call["rules"])
                return "\n".join(dict.fromkeys(rules))
            case "e" if self.kind == "plan":
                self.writing = "steps"
                return "\n".join(f"{n}. {text}" for n, text in enumerate(self._steps(), 1))
            case "e":
                self.writing = "because"
                return ""
            case _:
                return {"decision": "approve" if key == "y" else "reject"}

    def _steps(self) -> list[str]:
        steps = (self.view.get("plan") or {}).get("steps", ())
        return [" ".join(str(step["description"]).split()) for step in steps]

    def _number(self, number: int) -> AnswerJson | None:
        if self.kind == "clarify" and not self.multiple:
            return {"decision": "text", "choices": [number]}
        self.marked ^= {number}
        return None

    def _marks(self) -> AnswerJson | None:
        if not self.marked:
            return None
        if self.kind == "clarify":
            return {"decision": "text", "choices": sorted(self.marked)}
        items = {call["call_id"]: n in self.marked for n, call in enumerate(self.calls, 1)}
        return {"decision": "approve", "items": items}
