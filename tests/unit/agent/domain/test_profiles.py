"""The tools that a profile grants."""

from internal.agent.domain.profiles import Profile


def test_a_profile_grants_all_tools_or_only_the_listed_ones() -> None:
    assert Profile().grants("shell")
    reader = Profile(tools=("read_file",))
    assert reader.grants("read_file")
    assert not reader.grants("shell")
    assert not Profile(tools=()).grants("read_file")
