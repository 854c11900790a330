"""MCP servers, for people who review them."""

from typing import Literal, Protocol

import msgspec

MAX_START_SECONDS = 600.0
"""The longest time that a server may be given to start."""

LOGIN_URL_SECONDS = 600.0
"""Time that a person has to sign in with a URL."""

McpServerState = Literal[
    "offered", "not reviewed", "changed since its review", "disabled", "not usable"
]
"""Only the accepted tools of a server that is `offered` or has `changed` reach the model."""

McpToolState = Literal["offered", "not reviewed", "changed since its review"]


class McpToolSummary(msgspec.Struct, frozen=True):
    """A tool of a server. `name` is the one for the model and for rules.

    `description` has escapes for hidden characters. `state` says whether it is offered.
    """

    name: str
    description: str
    risk: str
    state: McpToolState


class McpServerSummary(msgspec.Struct, frozen=True):
    """A server in a list. `problem` is why it is not usable, `warnings` are sentences.

    `target` is its command line or its address. `sha256` is the hash of its definition and of the
    tools that it listed last, "" if it is not usable.
    """

    name: str
    state: McpServerState
    target: str
    tools: int
    sha256: str
    problem: str = ""
    warnings: list[str] = []


class McpReviewReport(msgspec.Struct, frozen=True):
    """What a person should know of a server before its tools are offered.

    `variables` and `headers` are names; values are secrets. `login` says who signs in, "" for a
    server without: `shared`, `personal` or `client_credentials`. `read_only`, `writable` and
    `network` are what its command reaches where it `is_isolated`. `tools` are those it listed last,
    none if `is_listed` is false: it has not been started with this definition. `package` is the
    installed one with its version, "" for a server without. `changes` is a
    unified diff to the accepted tools.
    """

    server: McpServerSummary
    host: str
    variables: list[str]
    headers: list[str]
    login: str
    folder: str
    read_only: list[str]
    writable: list[str]
    network: list[str]
    is_isolated: bool
    is_listed: bool
    package: str
    tools: list[McpToolSummary]
    problems: list[str]
    changes: list[str]


class LoginAnswer(msgspec.Struct, frozen=True):
    """The parameters with which an authorization server sends a browser back.

    `issuer` is the parameter `iss`. `error` is the reason why there is no code.
    """

    code: str
    state: str
    issuer: str | None = None
    error: str = ""


class LoginUrl(msgspec.Struct, frozen=True):
    """The URL at which one person signs in to a server, within so many `seconds`.

    It is for this person only: whoever opens it gives the own account to the principal.
    """

    url: str
    seconds: int


class McpReviews(Protocol):
    """All servers, for people who review them."""

    async def list_all(self) -> list[McpServerSummary]:
        """Return all servers, including unusable ones. Starts nothing."""
        ...

    async def review(self, name: str, *, start: bool) -> McpReviewReport:
        """Return the review of a server. With `start` it lists its tools now.

        Raises:
            NotFound: there is no such server.
            Conflict: it is not usable, or cannot be started.
        """
        ...

    async def decide(self, name: str, sha256: str, *, accept: bool) -> McpServerSummary:
        """Accept the definition and tools with this hash, or withdraw an acceptance.

        Raises:
            NotFound: there is no such server.
            Conflict: it has another hash, is not usable, or its tools are not known.
            FilesUnavailable: the decision cannot be stored.
        """
        ...

    async def start_login(
        self, name: str, principal: str, redirect_uri: str, *, may_share: bool
    ) -> str:
        """Return the URL at which a person signs in; the browser comes back to `redirect_uri`.

        Raises:
            NotFound: there is no such server.
            Conflict: it is not usable, or accepts no login.
            Forbidden: the login is for all people, and this person may not change it.
        """
        ...

    async def finish_login(self, answer: LoginAnswer) -> str:
        """Finish the login that waits for an answer, and return the name of the server.

        Raises:
            NotFound: none does.
            Conflict: it failed.
        """
        ...
