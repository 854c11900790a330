"""The identity of a process, stored with the runs and the database that it owns."""

from typing import NamedTuple


class ProcessIdentity(NamedTuple):
    """A process, told apart from any other that has the same pid at another time or elsewhere.

    Attributes:
        name: a unique name, such as `gateway-2ABc…`.
        pid: its number in its pid namespace.
        start: when it started; no two processes with one pid have the same within a boot.
        namespace: its pid namespace, "" if the system has none.
        boot: the boot of its machine, "" if unknown.
        host: the name of its machine, for people.
    """

    name: str
    pid: int
    start: str
    namespace: str
    boot: str
    host: str

    def __str__(self) -> str:
        """The text that is stored as the owner of a run."""
        return "/".join(map(str, self))

    @classmethod
    def parse(cls, owner: str) -> "ProcessIdentity | None":
        """Return the process that an owner names, None for any other text."""
        name, *rest = owner.split("/", len(cls._fields) - 1)
        if len(rest) != len(cls._fields) - 1 or not rest[0].isdecimal():
            return None
        return cls(name, int(rest[0]), *rest[1:])
