"""Bounds on data from servers, and the error of a server that fails."""

from internal.agent.domain.errors import LarkspurError, ToolError

MAX_MESSAGE_BYTES = 10_000_000
"""The largest message of a server; pictures in it are base64."""
MAX_SERVER_OUTPUT_BYTES = 100_000_000
"""Maximum output of the process of a server in its life."""
RENEWAL_BYTES = 50_000_000
"""After so many bytes an idle server is stopped; the next call starts it again."""
MAX_PAGES = 100
"""The pages of a list of tools."""


class ServerFailure(LarkspurError):
    """A server cannot be used, or broke a bound. The message is the end of a sentence.

    `refused` are the sites, as host:port, that its command tried to reach without permission, and
    `refused_addresses` the sites with an allowed host but a private address.
    """

    def __init__(
        self,
        message: str,
        *,
        refused: tuple[str, ...] = (),
        refused_addresses: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.refused, self.refused_addresses = refused, refused_addresses


class CallTimedOut(ToolError):
    """A server does not answer a call in time, which is given in seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the server did not answer in {seconds:g} s")


class LoginRequired(ServerFailure):
    """A person must sign in to a server before it can be used."""
