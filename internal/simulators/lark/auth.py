"""App credentials: secrets, tenant access tokens and connection tickets."""

import hmac
import secrets
from collections.abc import Callable, Mapping

from internal.simulators.lark.errors import TOKEN_INVALID, TOKEN_MISSING, LarkError
from internal.simulators.lark.model import App

TOKEN_SECONDS = 7_200
NO_APP, WRONG_SECRET = 10003, 10014


class Credentials:
    """Check app secrets; issue and check tokens and tickets."""

    def __init__(self, apps: Mapping[str, App], now: Callable[[], float]) -> None:
        self._apps = apps
        self._now = now
        self._tokens: dict[str, tuple[App, float]] = {}
        self._tickets: dict[str, App] = {}

    def app(self, app_id: object, secret: object) -> App:
        """Return the app with this id and secret.

        Raises:
            LarkError: The app is unknown or its secret differs; the HTTP status is 200, as Lark's.
        """
        app = self._apps.get(str(app_id))
        if app is None:
            raise LarkError(NO_APP, "invalid param", 200)
        if not hmac.compare_digest(app.secret.encode(), str(secret).encode("utf-8", "replace")):
            raise LarkError(WRONG_SECRET, "app secret invalid", 200)
        return app

    def issue(self, app: App) -> str:
        """Return a new tenant access token."""
        token = f"t-{secrets.token_urlsafe(24)}"
        self._tokens[token] = (app, self._now() + TOKEN_SECONDS)
        return token

    def check(self, authorization: str | None) -> App:
        """Return the app that an `Authorization` header belongs to.

        Raises:
            LarkError: The token is missing, unknown, revoked or expired.
        """
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise LarkError(TOKEN_MISSING, "Missing access token for authorization.")
        app, until = self._tokens.get(token.strip(), (None, 0.0))
        if app is None or until <= self._now():
            raise LarkError(TOKEN_INVALID, "Invalid access token for authorization.")
        return self._apps[app.app_id]  # its scopes may have changed since

    def revoke(self) -> None:
        """Invalidate all tokens."""
        self._tokens.clear()

    def ticket(self, app: App) -> str:
        """Return a ticket that authenticates a websocket handshake of the app."""
        ticket = secrets.token_urlsafe(24)
        self._tickets[ticket] = app
        return ticket

    def of_ticket(self, ticket: str) -> App | None:
        """Return the app of a ticket, or None."""
        return self._tickets.get(ticket)
