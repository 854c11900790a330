"""Assessment of an answer: whether a model server gave it. No I/O."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Literal, NamedTuple

from internal.agent.domain.errors import ModelAddressWrong
from internal.llm.lenient_json import one_line

AnswerKind = Literal[
    # a model server answers
    "models",  # with a list
    "taken",  # it reads requests: it refuses one that says nothing, or has no list
    "key",  # it refuses the key, or the lack of one
    "credit",
    "busy",
    # something else answers
    "missing",  # there is nothing at this path
    "page",
    "login",
    "redirect",
    "failing",
    "odd",
    # nothing answers
    "refused",
    "unknown_host",
    "unreachable",
    "silent",
    "certificate",
    "no_tls",
    "closed",
    "proxy",
    "unusable",
]
_SERVED: frozenset[AnswerKind] = frozenset({"models", "taken", "key", "credit", "busy"})
_HEARD: frozenset[AnswerKind] = frozenset(
    {"missing", "page", "login", "redirect", "failing", "odd"}
)
_PAGE = re.compile(r"\s*(?:\ufeff)?\s*<(?:!doctype|html|head|\?xml|!--|body|script)", re.IGNORECASE)
_LOGIN = re.compile(
    r"type=[\"']?password|sign[ -]?in|log[ -]?in\b|单点登录|登录|single sign-on", re.IGNORECASE
)
_LOGIN_PATH = re.compile(r"log-?in|sign-?in|sso|saml|oauth|auth(?:orize)?\b|cas\b", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>([^<]{1,120})", re.IGNORECASE)
_NEEDS_TLS = re.compile(r"https (?:port|server)", re.IGNORECASE)
# 404 is also said of models, which is another matter; paths such as /v1/models are no models
_NAMES_MODEL = re.compile(
    r"(?<![/\w])(?:models?|deployments?|engine|endpoint ep-)\b|模型", re.IGNORECASE
)
_NO_ENDPOINT = re.compile(
    r"unexpected endpoint|invalid url|(?:unknown|no(?: such)?|unsupported) (?:url|path|route)"
    r"|cannot (?:get|post)|not found",
    re.IGNORECASE,
)
_UNFOLLOWED = {HTTPStatus.MOVED_PERMANENTLY, HTTPStatus.FOUND, HTTPStatus.SEE_OTHER}
_NO_PATH = {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED}
_LOGIN_STATUSES = {
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.PROXY_AUTHENTICATION_REQUIRED,
    HTTPStatus.NETWORK_AUTHENTICATION_REQUIRED,
}
# MiniMax has its own codes for keys
_MINIMAX_KEY_CODES = {1004, 2049}
_KINDS: Mapping[int, AnswerKind] = {401: "key", 403: "key", 402: "credit", 429: "busy"}
_REFUSALS = {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}


class AddressAnswer(NamedTuple):
    """Result of one request. `detail` is a reason, a title or a target, on one line.

    `windows` are the context windows of the listed models, in tokens, as far as the list has them.
    """

    kind: AnswerKind
    status: int = 0
    detail: str = ""
    models: tuple[str, ...] | None = None
    windows: Mapping[str, int] = {}

    @property
    def is_served(self) -> bool:
        """Whether a model server gave the answer."""
        return self.kind in _SERVED

    @property
    def is_heard(self) -> bool:
        """Whether anything at all answered over HTTP."""
        return self.is_served or self.kind in _HEARD


def is_page(text: str, media_type: str = "") -> bool:
    """Return True if a body is a web page rather than an answer for programs."""
    if _PAGE.match(text):
        return True
    return "text/html" in media_type and text.lstrip()[:1] not in {"{", "["} and "data:" not in text


def is_wrong_address(status: int, headers: Mapping[str, str], body: object) -> bool:
    """Return True if an answer to a request for a reply comes from no model server at this path.

    `body` is decoded JSON, or a text. A model that does not exist is another matter.
    """
    if status in _UNFOLLOWED and "location" in headers:
        return True
    if isinstance(body, str) and is_page(body, headers.get("content-type", "")):
        return status < HTTPStatus.INTERNAL_SERVER_ERROR  # else that of a gateway that fails
    match body:
        case {"error": str(text)} if text.startswith("Unexpected endpoint"):
            return True  # LM Studio says so with 200
        case {"error": {"message": str(text)}}:  # of a model server, unless it has no such path
            is_told = _NO_ENDPOINT.search(text) is not None
        case _:
            text, is_told = str(body)[:4_000], True
    return status in _NO_PATH and is_told and not _NAMES_MODEL.search(text)


def wrong_address_error(title: str, status: int, detail: str) -> ModelAddressWrong:
    """Return the error of a run whose requests reach no model server."""
    return ModelAddressWrong(
        f"The address of {title} does not answer as a model server does ({status}). Run"
        " `larkspur doctor`: it tries the address and names the one that works.",
        detail=f"{status} {one_line(detail)}",
    )


def judge(status: int, headers: Mapping[str, str], body: object) -> AddressAnswer:
    """Return the meaning of an answer other than a list of models.

    `body` is decoded JSON, or a text.
    """
    is_redirect = HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST
    if is_redirect and headers.get("location"):
        return AddressAnswer("redirect", status, headers["location"])
    if isinstance(body, str):
        if _NEEDS_TLS.search(body):
            return AddressAnswer("no_tls", status, "it wants https")
        if is_page(body, headers.get("content-type", "")) or status in _LOGIN_STATUSES:
            return _judge_page(status, headers, body)
    if is_wrong_address(status, headers, body):
        return AddressAnswer("missing", status)
    return _judge_status(status, headers, body)


def is_login_path(url: str) -> bool:
    """Return True if a URL is probably that of a page to sign in."""
    return _LOGIN_PATH.search(url) is not None


def reason_in(body: object) -> str:
    """Return the message of an error in one of the forms of model servers, else ""."""
    match body:
        case {"error": {"message": str(text)}} | {"error": str(text)} | {"message": str(text)}:
            return one_line(text, 200)
        case {"detail": str(text)} | {"base_resp": {"status_msg": str(text)}}:
            return one_line(text, 200)
        case _:
            return ""


def _judge_page(status: int, headers: Mapping[str, str], body: str) -> AddressAnswer:
    title = _TITLE.search(body)
    shown = one_line(title[1], 80) if title else ""
    if _wants_login(headers) or (status != HTTPStatus.OK and status in _LOGIN_STATUSES):
        return AddressAnswer("login", status, shown)
    if _LOGIN.search(body[:65_536]):
        return AddressAnswer("login", status, shown)
    is_failing = status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return AddressAnswer("failing" if is_failing else "page", status, shown)


def _judge_status(status: int, headers: Mapping[str, str], body: Any) -> AddressAnswer:
    reason, kind = reason_in(body), _KINDS.get(status)
    match body:
        case {"base_resp": {"status_code": int(code)}} if code in _MINIMAX_KEY_CODES:
            kind = "key"
        case _:
            pass
    if kind == "key" and _wants_login(headers):
        return AddressAnswer("login", status)
    if kind is not None:
        return AddressAnswer(kind, status, reason)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        # an empty request makes some servers fail; one that says why is a model server
        is_told = status == HTTPStatus.INTERNAL_SERVER_ERROR and bool(reason)
        return AddressAnswer("taken" if is_told else "failing", status, reason)
    is_taken = isinstance(body, dict | list) or status in _REFUSALS
    return AddressAnswer("taken" if is_taken else "odd", status, reason or one_line(str(body), 80))


def _wants_login(headers: Mapping[str, str]) -> bool:
    return headers.get("www-authenticate", "")[:5].lower() in {"basic", "ntlm", "negot"}
