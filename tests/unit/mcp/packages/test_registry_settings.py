"""The package indexes of a person, in files as pip, uv and npm write them."""

from pathlib import Path

import pytest

from internal.mcp.packages.registry_settings import read_registry_settings

CANARY = "canary-4711"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".config" / "pip").mkdir(parents=True)
    (tmp_path / ".config" / "uv").mkdir()
    return tmp_path


def test_without_settings_the_public_indexes_are_used(home: Path) -> None:
    environ = {"PIP_CONFIG_FILE": "/dev/null"}
    python = read_registry_settings("python", environ, home)
    assert python.hosts == ("pypi.org", "files.pythonhosted.org")
    assert (python.variables, python.options, python.secrets) == ({}, (), ())
    npm = read_registry_settings("npm", {}, home)
    assert (npm.hosts, npm.variables) == (("registry.npmjs.org",), {})


def test_an_index_of_pip_takes_the_place_of_pypi(home: Path) -> None:
    file = home / ".config" / "pip" / "pip.conf"
    file.write_text(
        f"[global]\nindex-url = https://ada:{CANARY}@mirror.example:8443/simple\n"
        "extra-index-url =\n  https://more.example/simple\n"
    )
    found = read_registry_settings("python", {}, home)
    assert found.hosts == ("mirror.example:8443", "more.example")
    assert found.variables["UV_DEFAULT_INDEX"] == "https://mirror.example:8443/simple"
    assert found.variables["PIP_EXTRA_INDEX_URL"] == "https://more.example/simple"
    assert found.secrets == (str(file),)
    assert CANARY not in repr(found)


def test_uv_decides_before_pip_and_the_environment_before_both(home: Path) -> None:
    environ = {"PIP_CONFIG_FILE": "/dev/null"}
    (home / ".config" / "uv" / "uv.toml").write_text(
        '[[index]]\nurl = "https://uv.example/simple"\ndefault = true\n'
        '[[index]]\nname = "more"\nurl = "https://more.example/simple"\n'
    )
    found = read_registry_settings("python", environ, home)
    assert found.variables["PIP_INDEX_URL"] == "https://uv.example/simple"
    assert found.hosts == ("uv.example", "more.example")
    environ["UV_DEFAULT_INDEX"] = "http://127.0.0.2:8080/simple"
    found = read_registry_settings("python", environ, home)
    assert found.variables["PIP_INDEX_URL"] == "http://127.0.0.2:8080/simple"
    assert found.hosts[0] == "127.0.0.2:8080"


def test_a_registry_of_npm_is_used_without_its_token(home: Path) -> None:
    (home / ".npmrc").write_text(
        "registry=https://npm.example/all/\n@ours:registry=https://ours.example/\n"
        f"//npm.example/all/:_authToken={CANARY}\n"
    )
    found = read_registry_settings("npm", {}, home)
    assert found.hosts == ("npm.example", "ours.example")
    assert found.variables["npm_config_registry"] == "https://npm.example/all/"
    assert found.options == ("--@ours:registry=https://ours.example/",)
    assert found.secrets == (str(home / ".npmrc"),)
    assert CANARY not in repr(found)


@pytest.mark.parametrize("text", ["[global\nx", "[[index]]\nurl = 1", "\0", "[[index]]\nx"])
def test_damaged_files_count_as_missing(home: Path, text: str) -> None:
    for name in ("pip/pip.conf", "uv/uv.toml"):
        (home / ".config" / name).write_text(text)
    found = read_registry_settings("python", {}, home)
    assert found.hosts[0] == "pypi.org"


def test_what_is_no_address_is_left_out(home: Path) -> None:
    environ = {"PIP_INDEX_URL": "file:///wheels", "PIP_CONFIG_FILE": "/dev/null"}
    assert read_registry_settings("python", environ, home).hosts[0] == "pypi.org"
