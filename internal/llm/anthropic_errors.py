"""What Anthropic's errors mean to us, by https://platform.claude.com/docs/en/api/errors ."""

import re

from internal.agent.domain.errors import ModelError, ModelRejected
from internal.llm.errors import Peer, error_of_status

ANTHROPIC = Peer("Anthropic", "ANTHROPIC_API_KEY")

_STATUS_OF = {
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_STALE_THINKING = re.compile(r"thinking.*(signature|bound|cannot be modified)|signature.*thinking")


def error_of_type(kind: str, message: str) -> ModelError:
    """Return our error for one that came inside a stream, where there is no status."""
    return error_of_status(ANTHROPIC, _STATUS_OF.get(kind, 400), message)


def is_stale_thinking(error: ModelError) -> bool:
    """Return whether the provider refused the model's earlier thoughts, not the request itself."""
    return isinstance(error, ModelRejected) and bool(_STALE_THINKING.search(str(error).lower()))
