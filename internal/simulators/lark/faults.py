"""Fault switches: what goes wrong, and until when."""

import msgspec

ANSWERS = ("rate_limit", "bad_gateway", "lost", "slow", "code")


class AnswerFault(msgspec.Struct, forbid_unknown_fields=True):
    """What becomes of the next `times` calls whose "METHOD /path" holds `match`.

    `kind`: rate_limit (429 with the reset header set to `seconds`), bad_gateway (502 with HTML),
    code (that code, HTTP 400), lost (done, then the connection is cut before the answer), slow
    (done, answered after `seconds`).
    """

    kind: str
    match: str = ""
    times: int = 1
    seconds: float = 1.0
    code: int = 0

    def __post_init__(self) -> None:
        if self.kind not in ANSWERS:
            raise ValueError(f"kind is one of {', '.join(ANSWERS)}")


class Faults(msgspec.Struct, forbid_unknown_fields=True):
    """The switches. Fresh, nothing goes wrong.

    `discovery`: "", hang, busy (code 1), error (HTTP 500) or refuse (code 1000040344).
    `handshake`: "", limit, forbidden, busy or bare (no headers that say why).
    `pongs`: pings are answered.
    `duplicates`: each event comes so many times more. `reorder`: so many are held, then come last
    first. `fragment_bytes`: longer events come in parts, shuffled; 0 never. `new_event_ids`: a
    redelivery has another event_id. `limits`: frequency limits hold. `speed`: how many times
    faster than Lark failed events come again.
    """

    discovery: str = ""
    handshake: str = ""
    pongs: bool = True
    duplicates: int = 0
    reorder: int = 0
    fragment_bytes: int = 0
    new_event_ids: bool = False
    limits: bool = True
    speed: float = 1.0
    answers: list[AnswerFault] = []

    def __post_init__(self) -> None:
        if self.discovery not in {"", "hang", "busy", "error", "refuse"}:
            raise ValueError("discovery is hang, busy, error or refuse")
        if self.handshake not in {"", "limit", "forbidden", "busy", "bare"}:
            raise ValueError("handshake is limit, forbidden, busy or bare")
        if not self.speed > 0 or min(self.duplicates, self.reorder, self.fragment_bytes) < 0:
            raise ValueError("numbers are not below 0, and speed is above it")

    def take(self, call: str) -> AnswerFault | None:
        """Return what becomes of this call ("METHOD /path"), counting it."""
        for fault in self.answers:
            if fault.match in call and fault.times > 0:
                fault.times -= 1
                return fault
        return None
