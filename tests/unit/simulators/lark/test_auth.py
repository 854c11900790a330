import pytest

from internal.simulators.lark.auth import TOKEN_SECONDS, Credentials
from internal.simulators.lark.errors import LarkError
from tests.unit.simulators.lark import APP


def test_a_token_is_valid_until_it_expires_or_is_revoked() -> None:
    now = 0.0
    credentials = Credentials({APP.app_id: APP}, lambda: now)
    token = credentials.issue(APP)
    assert credentials.check(f"Bearer {token}") is APP
    now = TOKEN_SECONDS + 1
    with pytest.raises(LarkError):
        credentials.check(f"Bearer {token}")
    fresh = credentials.issue(APP)
    credentials.revoke()
    with pytest.raises(LarkError):
        credentials.check(f"Bearer {fresh}")


@pytest.mark.parametrize(("app_id", "secret"), [("cli_other", "secret"), (APP.app_id, "wrong")])
def test_wrong_credentials_are_rejected_with_http_200(app_id: str, secret: str) -> None:
    with pytest.raises(LarkError) as error:
        Credentials({APP.app_id: APP}, lambda: 0.0).app(app_id, secret)
    assert error.value.status == 200


def test_a_ticket_belongs_to_its_app() -> None:
    credentials = Credentials({APP.app_id: APP}, lambda: 0.0)
    assert credentials.of_ticket(credentials.ticket(APP)) is APP
    assert credentials.of_ticket("forged") is None
