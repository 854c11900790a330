"""The tables of fields that docs/http.md shows."""

from internal.channels.web.completions.fields import CHAT_COMPLETION_FIELDS, FieldTable
from internal.channels.web.completions.response_fields import RESPONSE_FIELDS

DOCUMENTED: tuple[tuple[str, FieldTable], ...] = (
    ("chat completion fields", CHAT_COMPLETION_FIELDS),
    ("response fields", RESPONSE_FIELDS),
)
"""The names of the marks of the tables in docs/http.md, between which `make generate` writes."""
