"""Fault switches: failures that the simulator produces on purpose."""

import msgspec

ANSWERS = frozenset(
    {"rate_limit", "bad_gateway", "lost", "cut", "slow", "late", "code", "quote", "no_data"}
)


class AnswerFault(msgspec.Struct, forbid_unknown_fields=True):
    """A fault for the next `times` calls whose `METHOD /path` contains `match`.

    With `content` only calls whose body contains that text fail.

    `kind`: `rate_limit` (429, reset header `seconds`), `bad_gateway` (502 with HTML), `code`
    (HTTP `status` with that code), `quote` (as `code`; the message repeats the credentials), `lost`
    (executed, then disconnected without a response), `cut` (executed, then disconnected in the
    middle of the response), `slow` (executed, response after `seconds`),
    `late` (executed after `seconds`, even if the caller does not wait), `no_data` (executed,
    success without data).
    """

    kind: str
    match: str = ""
    times: int = 1
    seconds: float = 1.0
    code: int = 0
    status: int = 400
    content: str = ""

    def __post_init__(self) -> None:
        if self.kind not in ANSWERS:
            raise ValueError(f"kind must be one of {', '.join(sorted(ANSWERS))}")


class Faults(msgspec.Struct, forbid_unknown_fields=True):
    """All switches. With the defaults nothing fails.

    Attributes:
        discovery: "", `hang`, `busy` (code 1), `error` (HTTP 500) or `refuse` (code 1000040344).
        handshake: "", `limit`, `forbidden`, `busy` or `bare` (no headers with the reason).
        pongs: Answer pings.
        duplicates: Send each event this many extra times.
        reorder: Hold back this many events, then send the last one first.
        fragment_bytes: Split longer events into shuffled parts; 0 never splits.
        new_event_ids: Give each redelivery a new event_id.
        limits: Enforce rate limits.
        speed: Redeliver events this many times faster than Lark.
        answers: Faults of REST calls.
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
            raise ValueError("discovery must be hang, busy, error or refuse")
        if self.handshake not in {"", "limit", "forbidden", "busy", "bare"}:
            raise ValueError("handshake must be limit, forbidden, busy or bare")
        if not self.speed > 0 or min(self.duplicates, self.reorder, self.fragment_bytes) < 0:
            raise ValueError("counts must not be negative and speed must be positive")

    def match_call(self, call: str, body: str = "") -> AnswerFault | None:
        """Return the fault for this call (`METHOD /path`), if any, and count it."""
        for fault in self.answers:
            if fault.match in call and fault.content in body and fault.times > 0:
                fault.times -= 1
                return fault
        return None
