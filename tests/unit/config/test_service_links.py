"""Variables of services in Kubernetes and Docker."""

from pathlib import Path

import pytest

from internal.config.loader import load
from internal.config.service_links import is_service_link


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LARKSPUR_SERVICE_HOST", "10.96.0.5"),
        ("LARKSPUR_SERVICE_HOST", "fd00::5"),
        ("LARKSPUR_GATEWAY_SERVICE_PORT", "8420"),
        ("LARKSPUR_SERVICE_PORT_HTTP_WEB", "8420"),
        ("LARKSPUR_PORT", "tcp://10.96.0.5:8420"),
        ("LARKSPUR_SERVER_PORT", "udp://[fd00::5]:53"),
        ("LARKSPUR_PORT_8420_TCP", "tcp://10.96.0.5:8420"),
        ("LARKSPUR_PORT_8420_TCP_PROTO", "tcp"),
        ("LARKSPUR_PORT_8420_TCP_PORT", "8420"),
        ("LARKSPUR_PORT_53_UDP_ADDR", "10.96.0.5"),
        ("LARKSPUR_1_NAME", "/page/larkspur_1"),
        ("LARKSPUR_DB_PORT_5432_TCP_START", "tcp://172.17.0.2:5432"),
    ],
)
def test_variables_of_services_have_a_form(name: str, value: str) -> None:
    assert is_service_link(name, {name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LARKSPUR_SERVER_PORT", "9000"),
        ("LARKSPUR_PORT", "8420"),
        ("LARKSPUR_SERVICE_PORT", "many"),
        ("LARKSPUR_SERVER_HOST", "127.0.0.1"),
        ("LARKSPUR_LLM_MODEL_NAME", "gpt-4o"),
        ("LARKSPUR_ENV_PATH", "/usr/bin"),
    ],
)
def test_misspelled_keys_do_not(name: str, value: str) -> None:
    assert not is_service_link(name, {name: value})


def test_the_variables_of_a_linked_container_go_with_its_name() -> None:
    environ = {"LARKSPUR_ENV_PATH": "/usr/bin", "LARKSPUR_NAME": "/page/larkspur"}
    assert is_service_link("LARKSPUR_ENV_PATH", environ)


def test_settings_are_read_beside_them(tmp_path: Path) -> None:
    links = {"LARKSPUR_PORT": "tcp://10.96.0.5:8420", "LARKSPUR_SERVICE_HOST": "10.96.0.5"}
    environ = {"LARKSPUR_HOME": str(tmp_path), "LARKSPUR_SERVER__PORT": "9000", **links}
    assert load(environ=environ).settings.server.port == 9000
