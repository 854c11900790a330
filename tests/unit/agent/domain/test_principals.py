"""The rights of a principal."""

from internal.agent.domain.principals import LOCAL_OWNER, Principal


def test_the_owner_has_every_right_and_others_only_their_own() -> None:
    assert all(LOCAL_OWNER.may(right) for right in ("talk", "operate", "owner"))
    talker = Principal("lark:a:ou_1", roles=frozenset({"talk"}))
    assert [talker.may(right) for right in ("talk", "operate", "owner")] == [True, False, False]
    assert Principal("x", roles=frozenset({"owner"})).may("operate")
    assert not Principal("stranger").may("talk")
