"""Errors that the simulated Lark returns, with Lark's codes."""

import math
from collections.abc import Mapping

TOKEN_MISSING, TOKEN_INVALID = 99991661, 99991663
RATE_LIMITED, CHAT_RATE_LIMITED = 99991400, 230020
FIELD_INVALID, BODY_INVALID = 99992402, 9499
NOT_IN_CHAT, RECALLED, TOO_LONG, TOO_OLD = 230002, 230011, 230025, 230031
NOT_SENDER_PATCH, NOT_SENDER_RECALL, NOT_SENDER_EDIT = 230012, 230026, 230071
FOREIGN_RESOURCE, EDITED_TOO_OFTEN, UNEDITABLE = 230017, 230072, 230054
CARD_REFUSED = 230099
NO_SCOPE, NO_GROUP_SCOPE = 99991672, 230027
RESET_HEADER = "x-ogw-ratelimit-reset"


class LarkError(Exception):
    """An error response: Lark's code and message, HTTP status and headers."""

    def __init__(
        self, code: int, msg: str, status: int = 400, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(msg)
        self.code, self.msg, self.status = code, msg, status
        self.headers = dict(headers or {})


def bad_parameter(ext: str) -> LarkError:
    """Return error 230001 with Lark's `ext=` suffix."""
    return LarkError(230001, f"Your request contains an invalid request parameter, ext={ext}")


def bad_field(field: str, why: str) -> LarkError:
    """Return the error of a field that Lark validates before looking anything up."""
    return LarkError(FIELD_INVALID, f"field validation failed: {field}: {why}")


def rate_limited(reset_seconds: float) -> LarkError:
    """Return the error of an app or API that exceeds its rate limit."""
    reset = str(max(1, math.ceil(reset_seconds - 0.001)))
    return LarkError(RATE_LIMITED, "request trigger frequency limit", 429, {RESET_HEADER: reset})


def chat_limited(what: str) -> LarkError:
    """Return the error for too many messages in a chat or updates of a message."""
    return LarkError(CHAT_RATE_LIMITED, f"The operation triggers the frequency limit, ext={what}")


class CardError(Exception):
    """An invalid card: Lark's inner code and message."""

    def __init__(self, code: int, msg: str) -> None:
        super().__init__(msg)
        self.code, self.msg = code, msg

    def in_message(self) -> LarkError:
        """Return the error as message calls report it."""
        ext = f"ext=ErrCode: {self.code}; ErrMsg: {self.msg}; ErrorValue: "
        return LarkError(CARD_REFUSED, f"Failed to create card content, {ext}")

    def in_cardkit(self) -> LarkError:
        """Return the error as CardKit reports it."""
        return LarkError(self.code, self.msg)
