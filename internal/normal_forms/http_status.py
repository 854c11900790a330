"""Reason phrases of HTTP status codes."""

from http import HTTPStatus

# RFC 9110; Python before 3.13 has the phrases of RFC 2616
_PHRASES = {
    413: "Content Too Large",
    414: "URI Too Long",
    416: "Range Not Satisfiable",
    422: "Unprocessable Content",
}


def status_phrase(status: int) -> str:
    """Return the reason phrase of a status code.

    Raises:
        ValueError: the code is not registered.
    """
    return _PHRASES.get(status) or HTTPStatus(status).phrase
