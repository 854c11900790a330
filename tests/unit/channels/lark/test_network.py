"""Use of the proxy by requests, and trusted certificates."""

import ssl
from pathlib import Path

import certifi
import pytest

from internal.channels.chat.transport import TransportUnavailable
from internal.channels.lark.network import LarkNetwork
from tests.support.certificates import make_authority

PROXY = "http://user:pass-word@proxy.example:3128"
OWN_CA = "Larkspur Test CA"


@pytest.mark.parametrize(
    ("no_proxy", "url", "is_used"),
    [
        ((), "https://open.feishu.cn", True),
        ((), "wss://msg-frontier.feishu.cn/ws/v2?a=b", True),
        ((), "http://127.0.0.1:8430", False),
        ((), "ws://localhost:8430/ws/v2", False),
        ((), "http://[::1]:8430", False),
        (("feishu.cn",), "https://open.feishu.cn", False),
        ((".feishu.cn",), "https://open.feishu.cn", False),
        (("open.feishu.cn:443",), "https://open.feishu.cn:443", False),
        (("eishu.cn",), "https://open.feishu.cn", True),
        (("*",), "https://open.feishu.cn", False),
        ((), "http://[::ffff:127.0.0.1]:8430", False),
        (("10.1.2.3",), "https://[::ffff:10.1.2.3]", False),
        (("10.1.2.3",), "https://[::ffff:10.1.2.4]", True),
    ],
)
def test_the_proxy_is_used_except_for_excluded_hosts(
    no_proxy: tuple[str, ...], url: str, is_used: bool
) -> None:
    assert LarkNetwork(PROXY, no_proxy).proxy_for(url) == (PROXY if is_used else None)


def test_without_a_proxy_everything_is_direct() -> None:
    assert LarkNetwork().proxy_for("https://open.feishu.cn") is None


def test_the_password_of_a_proxy_is_not_shown() -> None:
    assert repr(LarkNetwork(PROXY)) == "LarkNetwork(proxy.example:3128)"


@pytest.mark.needs("openssl")
def test_own_certificates_are_trusted_besides_the_public_ones(tmp_path: Path) -> None:
    authority = make_authority(tmp_path, "a.test")
    trusted = LarkNetwork(ca_file=authority.ca_file).tls_context()
    assert _is_own(trusted)
    public = ssl.create_default_context(cafile=certifi.where())
    assert _names(public) <= _names(trusted)
    assert not _is_own(LarkNetwork().tls_context())
    assert trusted.check_hostname


@pytest.mark.needs("openssl")
def test_certificates_of_the_environment_are_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(make_authority(tmp_path, "a.test").ca_file))
    assert _is_own(LarkNetwork().tls_context())


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_an_unusable_file_is_named(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(TransportUnavailable, match=rf"channels\.lark\.ca_file {file} cannot"):
        LarkNetwork(ca_file=file).tls_context()


def _names(context: ssl.SSLContext) -> set[str]:
    return {str(certificate["subject"]) for certificate in context.get_ca_certs()}


def _is_own(context: ssl.SSLContext) -> bool:
    return any(OWN_CA in name for name in _names(context))
