"""Errors of keys, and the words of providers that people can read."""

import re
from typing import NamedTuple

from internal.agent.domain.errors import ModelKeyRejected
from internal.llm.lenient_json import one_line

_MACHINE_TEXT = r"(?is)\s*[{\[<]|.*(?:Traceback|[{\[]\s*['\"]|</?[a-z]+>)"
_ADDRESS_OR_ID = (
    r"(?i)[(\[]?\b(?:https?://\S+|(?:request|trace|log)[ _-]?id\b\W*[\w-]+|(?:req_|org-)\w+"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})[)\]]?[.,;]?"
)
_CLASS_NAME = r"\b(?:\w+\.)*[A-Z]\w*(?:Error|Exception)\b[\s:-]*"


class ProviderInfo(NamedTuple):
    """The name of a provider and the variable of its key, None if it needs no key."""

    name: str
    key_name: str | None


def missing_key_error(peer: ProviderInfo) -> ModelKeyRejected:
    """Return the error for a missing key."""
    return ModelKeyRejected(
        f"No API key for {peer.name}: set {peer.key_name} or llm.api_key, or use the offline demo "
        "model with llm.provider: offline."
    )


def invalid_key_error(peer: ProviderInfo) -> ModelKeyRejected:
    """Return the error for a key that cannot be sent in a header."""
    return ModelKeyRejected(f"The API key in {_key(peer)} contains invalid characters.")


def readable(message: str) -> str:
    """Return the words of a provider, if a person can read them, else "".

    Addresses, ids and names of exceptions are left out, JSON, HTML and stack traces as a whole.
    """
    if re.match(_MACHINE_TEXT, message):
        return ""
    text = re.sub(_CLASS_NAME, "", re.sub(_ADDRESS_OR_ID, "", message))
    return one_line(text, 300).strip(" :,;")


def _key(peer: ProviderInfo) -> str:
    return peer.key_name or "llm.api_key"
