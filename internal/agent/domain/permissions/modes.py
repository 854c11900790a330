"""Permission modes, from the narrowest to the widest.

Standard library only: `larkspur --help` imports this.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Mode(StrEnum):
    """What happens to a call that no rule decides; docs/permissions.md has the table.

    An earlier name is read as the mode that it is called now.
    """

    PLAN = "plan"
    DENY = "deny"
    ASK = "ask"
    EDIT = "edit"
    RUN = "run"
    ALL = "all"

    @classmethod
    def _missing_(cls, value: object) -> "Mode | None":
        name = EARLIER_NAMES.get(value) if isinstance(value, str) else None
        return None if name is None else cls(name)

    def exceeds(self, other: "Mode") -> bool:
        """Return True if more runs without a question than in another mode."""
        widths = list(Mode)
        return widths.index(self) > widths.index(other)


EARLIER_NAMES: Mapping[str, str] = MappingProxyType(
    {"accept-edits": "edit", "sandboxed": "run", "full": "all"}
)
"""Current names of modes by earlier ones, in requests, settings and stored tasks."""
