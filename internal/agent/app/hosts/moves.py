"""Lets another host execute the tasks of a session, without the files that it has on its host."""

from typing import NamedTuple

from internal.agent.domain.errors import Conflict, NotFound
from internal.agent.domain.ids import SessionId
from internal.agent.domain.principals import AuditEntry
from internal.agent.store.database import Write
from internal.agent.store.files import WorkspaceArchive
from internal.agent.store.stores import Stores


class MovedSession(NamedTuple):
    """A session that was moved: the host that has its files, and its newest archive, if any."""

    previous: str
    archive: WorkspaceArchive | None


def move_session(
    stores: Stores, session_id: SessionId, host: str, *, by: str, via: str, now: str, version: str
) -> Write[MovedSession]:
    """Let a host execute the next run of a session, "" for any.

    Raises:
        NotFound: there is no such host.
        Conflict: a run of the session is running.
    """
    hosts = yield from stores.hosts.list_all()
    known = [each.name for each in hosts]
    if host and host not in known:
        names = ", ".join(known) or "none"
        raise NotFound(
            f"There is no host {host}; known hosts: {names}.",
            reason_code="no_host",
            host=host,
            names=names,
        )
    previous = yield from stores.hosts.get_of_session(session_id)
    archive = yield from stores.hosts.get_archive(session_id)
    if not (yield from stores.hosts.move(session_id, host, version)):
        place = f" on host {previous}" if previous else ""
        raise Conflict(
            f"A task of this session is running{place}: wait for it, or stop it first.",
            reason_code="session_runs",
        )
    entry = AuditEntry(now, by, via, "session.moved", session_id, f"{previous} -> {host or 'any'}")
    yield from stores.audit.add(entry)
    return MovedSession(previous, archive if archive and archive.sha256 else None)
