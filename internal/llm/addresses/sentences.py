"""Sentences about an address that does not work. No I/O."""

from collections.abc import Mapping

from internal.llm.addresses.variants import Place
from internal.llm.server_answers import AddressAnswer, AnswerKind
from internal.normal_forms.addresses import is_loopback

# {told} is the detail in brackets, {title} in quotation marks; each is left out if there is none
_FAULTS: Mapping[AnswerKind, str] = {
    "page": "sends a web page{title} in place of a model's answer ({status})",
    "login": "sends people to a page to sign in{told}",
    "redirect": "redirects to {detail}",
    "failing": "fails ({status}{title})",
    "refused": "refuses the connection",
    "unknown_host": "cannot be reached: the host {host} is not known",
    "unreachable": "cannot be reached{told}",
    "unusable": "cannot be reached{told}",
    "silent": "does not answer in time",
    "certificate": "has a certificate that is not trusted{told}",
    "closed": "closes the connection without an answer{told}",
    "proxy": "cannot be reached through the proxy of the environment{told}",
}
_OTHER = "does not answer as a model server does ({status})"
_TLS = {"http": "is reached over https only", "https": "does not speak TLS"}
_ADVICE: Mapping[AnswerKind, str] = {
    "certificate": (
        "Set SSL_CERT_FILE to the certificates of the authority that signed it, or correct the"
        " address."
    ),
    "login": (
        "A proxy on the way wants a login, or this is the address of a page: enter that of the API."
    ),
    "page": "Enter the address of the API, not that of a page.",
    "redirect": "The key was sent to {host} only.",
    "refused": "Correct the port.",
    "unknown_host": "Correct the name, or the network of this machine.",
    "proxy": "Correct HTTPS_PROXY, or list the host in NO_PROXY.",
}


def why(place: Place, cause: AddressAnswer) -> str:
    """Return the verb and the rest of a sentence on an address that does not work."""
    form = _TLS[place.scheme] if cause.kind == "no_tls" else _FAULTS.get(cause.kind, _OTHER)
    return form.format(
        status=cause.status,
        host=place.host,
        detail=cause.detail,
        told=f" ({cause.detail})" if cause.detail else "",
        title=f" “{cause.detail}”" if cause.detail else "",
    )


def advice_on(place: Place, cause: AddressAnswer) -> str:
    """Return advice about an address without a working correction, or ""."""
    if cause.kind == "refused" and is_loopback(place.host):
        return "Start the server, or correct the port."
    return _ADVICE.get(cause.kind, "").format(host=place.host)
