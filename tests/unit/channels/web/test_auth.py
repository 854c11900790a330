"""One-time codes and logins."""

from pathlib import Path

import pytest

from internal.channels.web.auth import (
    CODE_TTL_SECONDS,
    LOGIN_TTL_SECONDS,
    Logins,
    LoginSecrets,
    OneTimeCodes,
)

TOKEN = "t0ken-" * 8
ORIGIN = "http://127.0.0.1:8420"


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
    logins = Logins(path, lambda: now[0])
    login = logins.create(TOKEN, ORIGIN)
    name = logins.find(login, TOKEN, ORIGIN)
    assert name is not None
    assert logins.is_valid(name)
    assert not any(secret in path.read_text() for secret in login)
    assert path.stat().st_mode & 0o777 == 0o600
    assert Logins(path, lambda: now[0]).find(login, TOKEN, ORIGIN) == name
    assert logins.find(login, TOKEN[::-1], ORIGIN) is None
    now[0] += LOGIN_TTL_SECONDS
    assert logins.find(login, TOKEN, ORIGIN) is None
    logins.create(TOKEN, ORIGIN)
    assert name not in path.read_text()


def test_both_secrets_of_one_login_and_its_origin_are_needed() -> None:
    logins = Logins()
    login, other = logins.create(TOKEN, ORIGIN), logins.create(TOKEN, ORIGIN)
    assert len({*login, *other}) == 4
    assert logins.find(login, TOKEN, ORIGIN) is not None
    for wrong in (
        LoginSecrets(login.cookie, other.key),
        LoginSecrets(login.cookie, login.cookie),
        LoginSecrets(login.key, login.key),
        LoginSecrets(login.cookie, ""),
        LoginSecrets("", login.key),
        LoginSecrets(login.cookie, login.key + "x"),
        LoginSecrets(login.cookie, "\xff"),
    ):
        assert logins.find(wrong, TOKEN, ORIGIN) is None
    for origin in ("http://127.0.0.1:8421", "http://localhost:8420", "https://127.0.0.1:8420", ""):
        assert logins.find(login, TOKEN, origin) is None


@pytest.mark.parametrize("kept", ["", "[]", "{", '{"a": "b"}', "\xff" * 8, "[" * 100_000])
def test_a_damaged_login_file_contains_no_logins(tmp_path: Path, kept: str) -> None:
    path = tmp_path / "logins.json"
    path.write_text(kept, encoding="latin-1")
    logins = Logins(path)
    assert not logins.is_valid("anything")
    assert logins.find(logins.create(TOKEN, ORIGIN), TOKEN, ORIGIN) is not None


def test_the_oldest_login_is_revoked_above_the_limit(tmp_path: Path) -> None:
    now = [0.0]
    logins = Logins(tmp_path / "logins.json", lambda: now[0])
    created = []
    for _ in range(201):
        now[0] += 1
        created.append(logins.create(TOKEN, ORIGIN))
    found = [logins.find(login, TOKEN, ORIGIN) is not None for login in created]
    assert found == [False] + [True] * 200
