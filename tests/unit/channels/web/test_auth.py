"""One-time codes and logins."""

from pathlib import Path

import pytest

from internal.channels.web.auth import CODE_TTL_SECONDS, LOGIN_TTL_SECONDS, Logins, OneTimeCodes

TOKEN = "t0ken-" * 8


def test_codes_are_valid_once_and_for_five_minutes() -> None:
    now = [1_000.0]
    codes = OneTimeCodes(lambda: now[0])
    first, second = codes.issue(), codes.issue()
    assert codes.redeem(first)
    assert not codes.redeem(first)
    now[0] += CODE_TTL_SECONDS
    assert not codes.redeem(second)
    many = [codes.issue() for _ in range(20)]
    assert [codes.redeem(code) for code in many] == [False] * 4 + [True] * 16


def test_failed_attempts_are_forgiven_over_time() -> None:
    now = [0.0]
    codes = OneTimeCodes(lambda: now[0])
    for _ in range(10):
        assert codes.retry_after() == 0
        assert not codes.redeem("guess")
    assert 0 < codes.retry_after() <= 6
    now[0] += 6
    assert codes.retry_after() == 0


def test_a_login_expires_after_thirty_days_or_with_a_new_token(tmp_path: Path) -> None:
    now = [1_000_000.0]
    path = tmp_path / "logins.json"
    logins = Logins(TOKEN, path, lambda: now[0])
    value = logins.create()
    name = logins.login_id(value)
    assert logins.is_valid(name)
    assert value not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert Logins(TOKEN, path, lambda: now[0]).is_valid(name)
    changed = Logins(TOKEN[::-1], path, lambda: now[0])
    assert not changed.is_valid(changed.login_id(value))
    now[0] += LOGIN_TTL_SECONDS
    assert not logins.is_valid(name)
    logins.create()
    assert name not in path.read_text()


@pytest.mark.parametrize("kept", ["", "[]", "{", '{"a": "b"}', "\xff" * 8, "[" * 100_000])
def test_a_damaged_login_file_contains_no_logins(tmp_path: Path, kept: str) -> None:
    path = tmp_path / "logins.json"
    path.write_text(kept, encoding="latin-1")
    logins = Logins(TOKEN, path)
    assert not logins.is_valid(logins.login_id("anything"))
    assert logins.is_valid(logins.login_id(logins.create()))


def test_the_oldest_login_is_revoked_above_the_limit(tmp_path: Path) -> None:
    now = [0.0]
    logins = Logins(TOKEN, tmp_path / "logins.json", lambda: now[0])
    names = []
    for _ in range(201):
        now[0] += 1
        names.append(logins.login_id(logins.create()))
    assert [logins.is_valid(name) for name in names] == [False] + [True] * 200
