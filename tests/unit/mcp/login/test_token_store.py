"""The stored logins: encryption, keys and damage."""

import base64
import json
import os
from pathlib import Path

import pytest

from internal.agent.domain.secrets import mask_secrets
from internal.mcp.definitions import ServerDefinition
from internal.mcp.login.token_file import LoginsUnreadable, TokenFile
from internal.mcp.login.token_store import StoredLogin, TokenStore

LOGIN = StoredLogin(
    {"access_token": "canary-access-1", "refresh_token": "canary-refresh-1"},
    {"client_id": "c", "client_secret": "canary-client-1"},
    expires_at=5.0,
)


def definition(name: str = "docs", url: str = "https://example.com/mcp") -> ServerDefinition:
    return ServerDefinition(name, url=url, login="personal")


def store(home: Path, principal: str = "", *, key: str = "", name: str = "docs") -> TokenStore:
    return TokenStore(TokenFile(home, key), definition(name), principal)


def new_key() -> str:
    return base64.b64encode(os.urandom(32)).decode()


def test_a_login_is_stored_encrypted_for_one_principal_and_definition(tmp_path: Path) -> None:
    store(tmp_path, "local").put(LOGIN)
    assert store(tmp_path, "local").get() == LOGIN
    assert store(tmp_path, "lark:other").get() is None
    other = TokenStore(TokenFile(tmp_path), definition(url="https://example.org/mcp"), "local")
    assert other.get() is None
    for path in (tmp_path / "mcp-tokens.json", tmp_path / "mcp-token-key.json"):
        assert "canary" not in path.read_text()
        assert path.stat().st_mode & 0o777 == 0o600


def test_the_secrets_of_a_login_are_masked(tmp_path: Path) -> None:
    store(tmp_path).put(LOGIN)
    for secret in ("canary-access-1", "canary-refresh-1", "canary-client-1"):
        assert secret not in mask_secrets(f"error: {secret}")


def test_a_login_replaces_the_one_of_an_older_definition(tmp_path: Path) -> None:
    older = TokenStore(TokenFile(tmp_path), definition(url="https://example.org/mcp"), "")
    older.put(LOGIN)
    store(tmp_path).put(LOGIN)
    assert older.get() is None
    assert len(TokenFile(tmp_path).read()) == 1


def test_logins_are_removed_by_server_and_principal(tmp_path: Path) -> None:
    for principal, name in (("a", "docs"), ("b", "docs"), ("a", "other")):
        store(tmp_path, principal, name=name).put(LOGIN)
    file = TokenFile(tmp_path)
    assert file.remove("docs", "a")
    assert not file.remove("docs", "a")
    assert store(tmp_path, "b").get() == LOGIN
    assert file.remove("docs")
    assert [each.key.server for each in file.read()] == ["other"]


def test_another_key_is_reported_and_changes_nothing(tmp_path: Path) -> None:
    store(tmp_path, key=new_key()).put(LOGIN)
    before = (tmp_path / "mcp-tokens.json").read_bytes()
    wrong = store(tmp_path, key=new_key())
    with pytest.raises(LoginsUnreadable, match="another key than that of the setting"):
        wrong.get()
    with pytest.raises(LoginsUnreadable, match="another key"):
        store(tmp_path, key=new_key(), name="other").put(LOGIN)
    assert (tmp_path / "mcp-tokens.json").read_bytes() == before


def test_a_missing_key_is_not_replaced_while_there_are_logins(tmp_path: Path) -> None:
    store(tmp_path).put(LOGIN)
    (tmp_path / "mcp-token-key.json").unlink()
    for use in (store(tmp_path).get, lambda: store(tmp_path, "b").put(LOGIN)):
        with pytest.raises(LoginsUnreadable, match="is missing, the key of"):
            use()
    assert not (tmp_path / "mcp-token-key.json").exists()


@pytest.mark.parametrize("key", ["short", base64.b64encode(b"x" * 31).decode(), "é" * 44])
def test_a_key_that_is_none_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(LoginsUnreadable, match="not a key of 32 bytes in base64"):
        store(tmp_path, key=key).put(LOGIN)


@pytest.mark.parametrize("content", ["{", "[]", '{"logins": [{"key": 1}]}', "{}"])
def test_a_damaged_file_is_reported(tmp_path: Path, content: str) -> None:
    (tmp_path / "mcp-tokens.json").write_text(content)
    with pytest.raises(LoginsUnreadable, match="is damaged"):
        store(tmp_path).get()
    with pytest.raises(LoginsUnreadable, match="is damaged"):
        TokenFile(tmp_path).remove("docs")


def test_a_login_moved_to_another_person_is_not_read(tmp_path: Path) -> None:
    store(tmp_path, "a").put(LOGIN)
    path = tmp_path / "mcp-tokens.json"
    document = json.loads(path.read_text())
    document["logins"][0]["key"]["principal"] = "b"
    path.write_text(json.dumps(document))
    with pytest.raises(LoginsUnreadable):
        store(tmp_path, "b").get()
