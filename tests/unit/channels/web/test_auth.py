"""One-time codes and logins."""

from concurrent.futures import ThreadPoolExecutor
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
    codes = OneTimeCodes(now=lambda: now[0])
    first, second = codes.issue(), codes.issue()
    assert codes.redeem(first)
    assert not codes.redeem(first)
    now[0] += CODE_TTL_SECONDS
    assert not codes.redeem(second)
    many = [codes.issue() for _ in range(20)]
    assert [codes.redeem(code) for code in many] == [False] * 4 + [True] * 16


def test_a_login_expires_after_thirty_days_or_with_a_new_token(tmp_path: Path) -> None:
    now = [1_000_000.0]
    path = tmp_path / "logins.json"
    logins = Logins(tmp_path, lambda: now[0])
    login = logins.create(TOKEN, ORIGIN)
    name = logins.find(login, TOKEN, ORIGIN)
    assert name is not None
    assert logins.is_valid(name)
    assert not any(secret in path.read_text() for secret in login)
    assert path.stat().st_mode & 0o777 == 0o600
    assert Logins(tmp_path, lambda: now[0]).find(login, TOKEN, ORIGIN) == name
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
    logins = Logins(tmp_path)
    assert not logins.is_valid("anything")
    assert logins.find(logins.create(TOKEN, ORIGIN), TOKEN, ORIGIN) is not None


def test_the_oldest_login_is_revoked_above_the_limit(tmp_path: Path) -> None:
    now = [0.0]
    logins = Logins(tmp_path, lambda: now[0])
    created = []
    for _ in range(201):
        now[0] += 1
        created.append(logins.create(TOKEN, ORIGIN))
    found = [logins.find(login, TOKEN, ORIGIN) is not None for login in created]
    assert found == [False] + [True] * 200


def test_processes_with_one_folder_share_codes_and_logins(tmp_path: Path) -> None:
    one, other = Logins(tmp_path), Logins(tmp_path)
    code = one.codes.issue()
    assert other.codes.redeem(code)
    assert not one.codes.redeem(code)
    first, second = one.create(TOKEN, ORIGIN), other.create(TOKEN, ORIGIN)
    names = [each.find(login, TOKEN, ORIGIN) for each in (one, other) for login in (first, second)]
    assert None not in names
    assert names[:2] == names[2:]
    assert names[0] is not None
    other.revoke(names[0])
    assert not one.is_valid(names[0])
    assert one.find(second, TOKEN, ORIGIN) == names[1]
    stored = (tmp_path / "login-codes.json").read_text()
    unused = one.codes.issue()
    assert unused not in stored + (tmp_path / "login-codes.json").read_text()
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_a_code_is_redeemed_by_one_of_many_processes(tmp_path: Path) -> None:
    code = Logins(tmp_path).codes.issue()
    with ThreadPoolExecutor(8) as threads:
        redeemed = threads.map(lambda _: Logins(tmp_path).codes.redeem(code), range(40))
        assert sum(redeemed) == 1


def test_a_code_or_login_that_cannot_be_stored_is_refused(tmp_path: Path) -> None:
    logins = Logins(tmp_path / "missing")
    with pytest.raises(FileNotFoundError):
        logins.codes.issue()
    with pytest.raises(FileNotFoundError):
        logins.create(TOKEN, ORIGIN)
