"""Every wrong form of an address, in both wire formats, against servers that answer."""

import json
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.secrets import mask_secrets
from internal.llm.addresses.check import (
    MAX_ADDRESSES,
    AddressReport,
    AddressRequest,
    check_address,
    list_server_models,
)
from internal.model_providers.provider import Anthropic, OpenAICompatible, Provider
from tests.support.certificates import make_authority
from tests.support.model_site import (
    LOGIN,
    WIRES,
    Handler,
    ModelSite,
    SiteAnswer,
    SiteRequest,
    model_server,
    model_site,
    page,
)
from tests.support.ports import free_port
from tests.support.raw_server import CLOSE, raw_server, response

KEY = "sk-canary-5e0b77aa-00"
ENDPOINTS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}
both = pytest.mark.parametrize("wire", WIRES)


@dataclass(frozen=True, kw_only=True)
class Regional(OpenAICompatible):
    """A provider with addresses of regions."""

    regions: tuple[str, ...] = ()


def provider_of(wire: str, *regions: str) -> Provider:
    if wire == "anthropic":
        return Anthropic(
            name="anthropic",
            title="Acme",
            description="",
            default_model="m",
            models=(),
            key_variable="ACME_KEY",
        )
    return Regional(
        name="acme",
        title="Acme",
        description="",
        default_model="m",
        models=(),
        key_variable="ACME_KEY",
        base_url=regions[0] if regions else "https://acme.invalid/v1",
        regions=regions,
    )


async def check(wire: str, address: str | None, key: str = KEY, **more: Any) -> AddressReport:
    fields = {"key_place": "ACME_KEY", "ports": (), "registry": (), **more}
    provider = fields.pop("provider", None) or provider_of(wire)
    assert isinstance(provider, Provider)
    report = await check_address(AddressRequest(provider, address, key, **fields))
    assert KEY not in str(report)
    assert "\n" not in report.sentence + report.advice
    return report


def works_at(wire: str, origin: str) -> str:
    """Return the address to set for a server whose endpoints start with /v1."""
    return f"{origin}/v1" if wire == "openai" else origin


@asynccontextmanager
async def served(wire: str, **options: Any) -> AsyncGenerator[ModelSite]:
    prefix = "/v1" if wire == "openai" else ""
    async with model_site(model_server(prefix, wire=wire, key=KEY, **options)) as site:
        yield site


@both
async def test_an_address_that_works_is_ok_and_its_models_are_known(wire: str) -> None:
    async with served(wire) as site:
        report = await check(wire, works_at(wire, site.origin))
        assert report.state == "ok"
        assert report.models == ("m-large", "m-small")
        assert report.sentence == (
            f"Acme answers at {works_at(wire, site.origin)}, takes the key and lists 2 models."
        )
        assert len(site.requests) == 2
        assert site.keys == {f"Bearer {KEY}"}


@both
@pytest.mark.parametrize(
    "form",
    [
        "{origin}",
        "{origin}/",
        "{origin}{endpoint}",
        "{origin}{endpoint}/",
        "{origin}{endpoint}?beta=true",
        "{origin}/v1/models",
        "{origin}//v1",
        '"{origin}/docs"',
        "{origin}/v2",
        "{bare}",
        "{bare}/v1/",
        "{bare}{endpoint}",
        "https://{bare}/v1",
        "export X_BASE_URL={origin}/ui",
    ],
)
async def test_the_address_that_works_is_named(wire: str, form: str) -> None:
    async with served(wire) as site:
        bare = site.origin.removeprefix("http://")
        text = form.format(origin=site.origin, bare=bare, endpoint=ENDPOINTS[wire])
        right = works_at(wire, site.origin)
        report = await check(wire, text)
        if report.state == "ok":  # a double slash and one at the end are left out
            assert right in report.sentence
            return
        assert report.base_url == right, report
        assert f"{right} answers as a model server does: set llm.base_url to it." in report.sentence
        assert (await check(wire, report.base_url)).state == "ok"


@both
@pytest.mark.parametrize("body", [page(), page(status=404), page(status=405), page(LOGIN)])
async def test_a_page_beside_the_api_is_told_with_the_address(wire: str, body: SiteAnswer) -> None:
    async with served(wire, otherwise=lambda _: body) as site:
        report = await check(wire, f"{site.origin}/ui")
        assert report.base_url == works_at(wire, site.origin)
        what = "page to sign in" if body.body == LOGIN else "web page “Open WebUI”"
        assert what in report.sentence


@both
async def test_a_site_without_a_model_server_gets_a_sentence_and_few_requests(wire: str) -> None:
    async with model_site(lambda _: page()) as site:
        report = await check(wire, f"{site.origin}/v1")
        assert report.base_url == ""
        assert report.sentence.endswith("in place of a model's answer (200).")
        assert "Tried as well:" in report.advice
        assert len(site.requests) <= 2 * MAX_ADDRESSES


@both
async def test_the_other_wire_format_is_recognised(wire: str) -> None:
    other = "anthropic" if wire == "openai" else "openai"
    async with served(other) as site:
        report = await check(wire, f"{site.origin}/v1")
        assert report.provider == other
        assert report.base_url == works_at(other, site.origin)
        assert f"set llm.provider to {other} and llm.base_url to it." in report.sentence


@both
async def test_lm_studio_says_unknown_paths_with_200(wire: str) -> None:
    def otherwise(request: SiteRequest) -> SiteAnswer:
        return SiteAnswer({"error": f"Unexpected endpoint or method. ({request.method})"})

    async with served(wire, otherwise=otherwise) as site:
        wrong = site.origin if wire == "openai" else f"{site.origin}/v1"
        report = await check(wire, wrong)
        assert report.base_url == works_at(wire, site.origin)


async def test_a_list_that_everybody_gets_does_not_prove_the_key() -> None:
    def answer(request: SiteRequest) -> SiteAnswer:
        if request.method == "GET":
            return SiteAnswer({"data": [{"id": "a"}]})
        return SiteAnswer({"error": {"message": "No auth credentials found"}}, 401)

    async with model_site(answer) as site:
        report = await check("openai", f"{site.origin}/v1")
        assert report.sentence == (
            f"Acme rejects the API key in ACME_KEY at {site.origin}/v1 (401):"
            " No auth credentials found"
        )


@both
async def test_a_wrong_and_a_missing_key_are_one_sentence_each(wire: str) -> None:
    async with served(wire) as site:
        address = works_at(wire, site.origin)
        wrong = await check(wire, address, "sk-Wrong-key-1")
        assert wrong.sentence.startswith(f"Acme rejects the API key in ACME_KEY at {address} (401)")
        assert "sk-Wrong-key-1" not in wrong.sentence
        missing = await check(wire, address, "")
        assert missing.sentence == f"Acme wants an API key at {address} (401)."
        assert missing.advice == "Set ACME_KEY or llm.api_key."
        unusable = await check(wire, address, "two words")
        assert unusable.sentence == "The API key in ACME_KEY contains invalid characters."


async def test_a_key_of_another_provider_is_recognised() -> None:
    async with served("openai") as site:
        report = await check("openai", f"{site.origin}/v1", "sk-ant-" + "abc" * 8)
        assert report.advice == ("It looks like a key of Anthropic: set llm.provider to anthropic.")
        report = await check("openai", f"{site.origin}/v1", "sk-" + "0a" * 16)
        assert report.advice == (
            "It looks like a key of DeepSeek or Qwen: set llm.provider to deepseek or qwen."
        )


@pytest.mark.parametrize(
    ("status", "says"), [(402, "has no credit"), (429, "is rate-limiting requests")]
)
async def test_an_account_without_credit_and_a_limit_are_told(status: int, says: str) -> None:
    async with model_site(lambda _: SiteAnswer({"error": {"message": "no"}}, status)) as site:
        assert says in (await check("openai", f"{site.origin}/v1")).sentence


async def test_the_other_region_of_a_provider_gets_the_key_and_is_named() -> None:
    right, wrong = (model_server("/v1", key=key) for key in (KEY, "another"))
    async with model_site(wrong) as cn, model_site(right, host="127.0.0.2") as intl:
        regions = (f"{cn.origin}/v1", f"{intl.origin}/v1")
        provider = provider_of("openai", *regions)
        for address in (None, regions[0], f"{cn.origin}/v1/"):
            report = await check("openai", address, provider=provider)
            assert report.base_url == regions[1]
            assert report.sentence == (
                f"Acme rejects the API key in ACME_KEY at {regions[0]} (401) and takes it at"
                f" {regions[1]}: set llm.base_url to it."
            )
        assert (await check("openai", regions[1], provider=provider)).state == "ok"
        neither = await check("openai", None, "sk-neither", provider=provider)
        assert neither.base_url == ""
        assert "and at 127.0.0.2" in neither.sentence


async def test_the_provider_of_a_listed_host_is_found_whatever_is_chosen() -> None:
    right, wrong = (model_server("/v1", key=key) for key in (KEY, "another"))
    async with model_site(wrong) as cn, model_site(right, host="127.0.0.2") as intl:
        registry = (provider_of("openai", f"{cn.origin}/v1", f"{intl.origin}/v1"),)
        generic = provider_of("openai", "https://generic.invalid/v1")
        report = await check("openai", f"{cn.origin}/v1", provider=generic, registry=registry)
        assert report.base_url == f"{intl.origin}/v1"


async def test_a_key_for_an_unlisted_host_is_not_sent_to_the_provider() -> None:
    async with (
        model_site(model_server("/v1", key="another")) as own,
        model_site(model_server("/v1"), host="127.0.0.2") as listed,
    ):
        provider = provider_of("openai", f"{listed.origin}/v1")
        report = await check("openai", f"{own.origin}/v1", provider=provider)
        assert "rejects" in report.sentence
        assert listed.requests == []


def redirect_to(target: str, status: int = 302) -> Handler:
    def answer(request: SiteRequest) -> SiteAnswer:
        return SiteAnswer("", status, {"location": target.format(path=request.path)})

    return answer


@both
@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_no_redirect_takes_the_key_to_another_host(wire: str, status: int) -> None:
    prefix = "/v1" if wire == "openai" else ""
    async with model_site(model_server(prefix, wire=wire, key=KEY), host="127.0.0.2") as thief:
        go = redirect_to(thief.origin + "{path}", status)
        async with model_site(go) as site:
            report = await check(wire, works_at(wire, site.origin))
        assert thief.requests
        assert thief.keys == {""}
        assert report.base_url == works_at(wire, thief.origin)
        assert f"redirects to {thief.origin}" in report.sentence
        assert "the key was not sent there" in report.sentence


async def test_a_redirect_to_a_page_to_sign_in_is_told() -> None:
    async with model_site(redirect_to("/oauth2/sign_in?rd={path}")) as site:
        report = await check("openai", f"{site.origin}/v1")
        assert "sends people to a page to sign in" in report.sentence
        assert report.base_url == ""


async def test_a_redirect_elsewhere_on_the_same_host_is_followed_with_the_key() -> None:
    api = model_server("/llm/v1", key=KEY)

    def answer(request: SiteRequest) -> SiteAnswer:
        if request.path.startswith("/llm/"):
            return api(request)
        return SiteAnswer("", 308, {"location": f"/llm{request.path}"})

    async with model_site(answer) as site:
        report = await check("openai", f"{site.origin}/v1")
        assert report.base_url == f"{site.origin}/llm/v1"


@both
async def test_a_server_at_a_usual_port_is_found_and_gets_no_key(wire: str) -> None:
    async with served(wire) as site:
        report = await check(wire, f"http://127.0.0.1:{free_port()}/v1", ports=(site.port,))
        assert report.base_url == works_at(wire, site.origin)
        assert "refuses the connection" in report.sentence
        assert "and wants a key (the key was not sent there)" in report.sentence
        assert site.keys == {""}


async def test_nothing_listens() -> None:
    report = await check("openai", address := f"http://127.0.0.1:{free_port()}/v1")
    assert report.sentence == f"{address} refuses the connection."
    assert report.advice.startswith("Start the server, or correct the port.")


async def test_an_unknown_host_is_told_with_the_provider_s_own_address() -> None:
    report = await check("openai", "https://api.nowhere.invalid/v1")
    assert "the host api.nowhere.invalid is not known" in report.sentence
    assert "Acme itself is at https://acme.invalid/v1." in report.advice


@both
async def test_a_certificate_that_is_not_trusted_is_told(wire: str, tmp_path: Path) -> None:
    identity = make_authority(tmp_path, "127.0.0.1").server
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(identity.certificate, identity.key)
    async with model_site(model_server("/v1"), tls=tls) as site:
        report = await check(wire, f"{site.origin}/v1")
        assert "has a certificate that is not trusted" in report.sentence
        assert "SSL_CERT_FILE" in report.advice
        assert site.requests == []


async def test_what_is_not_http_and_what_hangs_up_are_told() -> None:
    async with raw_server([CLOSE]) as server:
        report = await check("openai", f"http://127.0.0.1:{server.port}/v1", seconds=1)
        assert "closes the connection without an answer" in report.sentence
    async with raw_server([b"SSH-2.0-OpenSSH_9.6\r\n", CLOSE]) as server:
        report = await check("openai", f"http://127.0.0.1:{server.port}/v1", seconds=1)
        assert "(this is not HTTP)" in report.sentence


async def test_a_server_that_never_answers_costs_bounded_time() -> None:
    async with raw_server([b"HTTP/1.1 200 OK\r\n"]) as server:
        report = await check("openai", f"http://127.0.0.1:{server.port}/v1", seconds=0.5)
        assert report.sentence.endswith("does not answer in time.")
        assert server.requests


async def test_a_gateway_that_fails_is_told_as_such() -> None:
    async with model_site(lambda _: page("<html><title>502 Bad Gateway</title>", 502)) as site:
        report = await check("openai", f"{site.origin}/v1")
        assert report.sentence == f"{site.origin}/v1 fails (502 “502 Bad Gateway”)."


@pytest.mark.parametrize("text", ["", "what?", "ftp://x/v1", "http://", "http://[::1", "/v1"])
async def test_what_is_no_address_is_told_without_a_request(text: str) -> None:
    report = await check("openai", text)
    assert (report.state, report.base_url) == ("fail", "")


async def test_a_page_that_quotes_the_key_does_not_show_it() -> None:
    async with model_site(lambda _: page(f"<html><title>Key {KEY}</title></html>")) as site:
        report = await check("openai", f"{site.origin}/v1")
        assert "web page “Key" in report.sentence
    refusal = SiteAnswer({"error": {"message": f"bad {KEY}"}}, 401)
    async with model_site(lambda _: refusal) as site:
        report = await check("openai", f"{site.origin}/v1")
        assert "rejects the API key" in report.sentence
    assert KEY not in mask_secrets(KEY)


async def test_a_huge_list_is_bounded_and_the_server_still_works() -> None:
    huge = json.dumps({"data": [{"id": f"m{n}", "about": "x" * 500} for n in range(20_000)]})

    def answer(request: SiteRequest) -> SiteAnswer:
        return SiteAnswer(huge) if request.method == "GET" else SiteAnswer({"error": "no"}, 400)

    async with model_site(answer) as site:
        report = await check("openai", f"{site.origin}/v1")
        assert (report.state, report.models) == ("ok", None)


@pytest.mark.parametrize("body", [response(b"{" * 50_000), response(b"\x00\xff\x1b[2J")])
async def test_odd_answers_end_in_one_printable_line(body: bytes) -> None:
    async with raw_server(body) as server:
        report = await check("openai", f"http://127.0.0.1:{server.port}/v1", seconds=1)
        assert report.sentence.isprintable()


async def test_models_are_listed_also_from_the_address_that_is_right() -> None:
    async with served("openai") as site:
        provider = provider_of("openai")
        right = await list_server_models(AddressRequest(provider, f"{site.origin}/v1", KEY))
        assert right.models == ("m-large", "m-small")
        assert len(site.requests) == 1
        wrong = await list_server_models(
            AddressRequest(provider, site.origin, KEY, ports=(), registry=())
        )
        assert (wrong.state, wrong.base_url) == ("fail", f"{site.origin}/v1")


async def test_a_server_that_lists_nothing_is_told_so() -> None:
    def answer(request: SiteRequest) -> SiteAnswer:
        status = 404 if request.method == "GET" else 400
        return SiteAnswer({"error": {"message": "not found"}}, status)

    async with model_site(answer) as site:
        report = await list_server_models(
            AddressRequest(provider_of("openai"), f"{site.origin}/v1", KEY, registry=())
        )
        assert report.sentence == f"Acme does not list its models at {site.origin}/v1."
