"""Which sessions a host is bound to."""

import pytest

from internal.agent.app.hosts.host import ONLY_HOST, Host, Location
from internal.agent.domain.tasks import RunSpec
from tests.support.store_records import a_task

OWN, NAMED = RunSpec(), RunSpec(workspace="/srv/project")
SHARED = RunSpec(workspace="/mnt/team/project")
APART = RunSpec(workspace="/srv/project", own_folder=True)


@pytest.mark.parametrize(
    ("location", "spec", "binds", "archives"),
    [
        ("host", OWN, True, False),
        ("host", NAMED, True, False),
        ("shared", OWN, False, False),
        ("shared", NAMED, True, False),
        ("shared", SHARED, False, False),
        ("shared", RunSpec(workspace="/mnt/team/../project"), True, False),
        ("shared", RunSpec(workspace="/mnt/team-2"), True, False),
        ("shared", APART, False, False),
        ("archive", OWN, True, True),
        ("archive", NAMED, True, False),
        ("archive", SHARED, True, False),
        ("archive", APART, True, True),
    ],
)
def test_a_host_is_bound_to_the_folders_that_others_do_not_have(
    location: Location, spec: RunSpec, binds: bool, archives: bool
) -> None:
    host, task = Host("one", location, "/mnt/team"), a_task(spec=spec)
    assert (host.binds(task), host.archives(task)) == (binds, archives)


def test_the_only_host_archives_nothing() -> None:
    assert not ONLY_HOST.archives(a_task())
    assert not Host("", "archive", "/mnt/team").archives(a_task())
