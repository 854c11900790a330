"""States of capabilities: what features remember of a run, stored with its Turn."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import msgspec

from internal.agent.domain.errors import StoreCorrupt


class StoredState(msgspec.Struct, frozen=True):
    """The state of a capability as it is stored. Its type need not be known to this version."""

    version: int
    fields: dict[str, Any]


class CapabilityState(msgspec.Struct, frozen=True):
    """The base of states; a capability without one takes no part in a run.

    Each field has a default. A later `version` may add fields and changes the meaning of none, so
    that an earlier one reads what it knows, and writes the rest back.
    """

    capability: ClassVar[str]
    version: ClassVar[int] = 1

    @classmethod
    def of(cls, states: Mapping[str, StoredState]) -> Self | None:
        """Return this state among the states of a run.

        Raises:
            StoreCorrupt: a field has another type.
        """
        stored = states.get(cls.capability)
        if stored is None:
            return None
        try:
            return msgspec.convert(stored.fields, cls)
        except msgspec.ValidationError as error:
            problem = f"The state of {cls.capability} cannot be read: {error}."
            raise StoreCorrupt(problem) from error

    def added_to(self, states: Mapping[str, StoredState]) -> dict[str, StoredState]:
        """Return the states with this one."""
        earlier = states.get(self.capability, StoredState(self.version, {}))
        fields = earlier.fields | msgspec.to_builtins(self, order="deterministic")
        version = max(earlier.version, self.version)
        return {**states, self.capability: StoredState(version, fields)}
