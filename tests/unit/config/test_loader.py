"""Reading the settings: layers, the model that works, and one clear sentence for each mistake."""

import os
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.secrets import mask_secrets
from internal.config.home import HomeError
from internal.config.inspect import Row, describe
from internal.config.loader import ConfigError, Loaded, load
from internal.config.setting_keys import KEYS, VARIABLES
from internal.config.yaml_document import parse
from internal.settings.llm import LlmSettings
from internal.settings.settings import Settings

CANARY = "canary-3f9a1c"


def written(home: Path, text: str | bytes) -> Path:
    file = home / "config.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def read(home: Path, text: str = "", /, **environ: str) -> Loaded:
    written(home, text)
    return load(environ={"LARKSPUR_HOME": str(home), **environ})


def complaint(home: Path, text: str | bytes = "", /, **environ: str) -> str:
    """The sentence, with the home folder called HOME."""
    written(home, text)
    with pytest.raises(ConfigError) as caught:
        load(environ={"LARKSPUR_HOME": str(home), **environ})
    sentence = str(caught.value)
    assert sentence.isprintable()
    return sentence.replace(str(home), "HOME")


# layers


def test_no_setting_is_required(home: Path) -> None:
    loaded = load(environ={"LARKSPUR_HOME": str(home)})
    assert loaded.file is None
    assert loaded.home == home
    assert loaded.origins == {}
    assert loaded.settings.database.path == home / "larkspur.db"
    assert (loaded.settings.llm.provider, loaded.settings.llm.model) == ("offline", "offline-demo")


def test_the_database_path_has_no_symbolic_links(home: Path) -> None:
    (home / "link.db").symlink_to(home / "real.db")
    settings = read(home, f"database: {{url: 'sqlite:///{home}/link.db'}}").settings
    assert settings.database.path == home / "real.db"
    assert settings.database.address == settings.database.shown == f"{home}/real.db"


def test_parameters_of_the_database_without_effect_are_known(home: Path) -> None:
    url = "postgresql://ana@host/name?keepalives=1&sslmode=require"
    loaded = read(home, f"database: {{url: '{url}'}}")
    assert loaded.settings.database.without_effect == ("keepalives",)
    assert read(home).settings.database.without_effect == ()


def test_the_password_of_the_database_is_not_shown(home: Path) -> None:
    url = "postgresql://me:Pass-word-1@db:5433/x?sslmode=require"
    loaded = read(home, f"database: {{url: '{url}'}}")
    database = loaded.settings.database
    assert (database.path, database.address) == (None, url)
    assert database.shown == "postgresql://db:5433/x"
    assert {row.key: row.value for row in describe(loaded)}["database.url"] == database.shown
    assert "Pass-word-1" not in repr(loaded.settings)
    assert "Pass-word-1" not in mask_secrets("the Pass-word-1 is masked")


def test_a_later_layer_wins(home: Path) -> None:
    file = "server: {port: 1, rate_limit_burst: 1, streams_per_user: 1}\nui:\n  language: zh"
    environ = {"LARKSPUR_SERVER__PORT": "2", "LARKSPUR_SERVER__RATE_LIMIT_BURST": "2"}
    written(home, file)
    loaded = load(
        environ={"LARKSPUR_HOME": str(home), **environ},
        flags={"server": {"port": 3, "host": None}, "llm": None},
    )
    server = loaded.settings.server
    assert (server.port, server.rate_limit_burst, server.streams_per_user) == (3, 2, 1)
    assert loaded.settings.ui.language == "zh"
    assert loaded.origins == {
        "server.port": "flag",
        "server.rate_limit_burst": "environment LARKSPUR_SERVER__RATE_LIMIT_BURST",
        "server.streams_per_user": f"{home}/config.yaml:1",
        "ui.language": f"{home}/config.yaml:3",
    }


def test_the_file_is_the_one_named(home: Path, tmp_path: Path) -> None:
    written(home, "server: {port: 1}")
    (tmp_path / "two.yaml").write_text("server: {port: 2}")
    (tmp_path / "three.yaml").write_text("server: {port: 3}")
    environ = {"LARKSPUR_HOME": str(home)}
    assert load(environ=environ).settings.server.port == 1
    environ["LARKSPUR_CONFIG"] = str(tmp_path / "two.yaml")
    assert load(environ=environ).settings.server.port == 2
    loaded = load(config=tmp_path / "three.yaml", environ=environ)
    assert (loaded.settings.server.port, loaded.file) == (3, tmp_path / "three.yaml")


@pytest.mark.parametrize("text", ["", "# nothing", "---", "~", "{}", "llm:\nserver:\n  port:\n"])
def test_empty_values_count_as_not_set(home: Path, text: str) -> None:
    assert read(home, text).settings == read(home).settings


def test_every_kind_of_value_can_be_written(home: Path) -> None:
    text = """\
llm:
  provider: anthropic
  temperature: .5
  request_timeout_seconds: 1e1
  max_output_tokens: "64"
  prices: {claude-x: {input: 3, output: 15.5}}
agent: {gates: off, workspace: ~/work}
tools:
  allow: [read_file, "shell(git status)"]
  web_fetch: {allow_private_networks: true}
"""
    settings = read(home, text).settings
    assert settings.llm.temperature == 0.5
    assert settings.llm.request_timeout_seconds == 10
    assert settings.llm.max_output_tokens == 64
    assert settings.llm.prices["claude-x"].output == 15.5
    assert settings.agent.gates == "off"
    assert settings.agent.workspace == Path.home() / "work"
    assert settings.tools.allow == ("read_file", "shell(git status)")
    assert settings.tools.web_fetch.allow_private_networks is True


def test_every_key_has_a_variable(home: Path) -> None:
    environ = {
        "LARKSPUR_LLM__TEMPERATURE": "1",
        "LARKSPUR_LLM__PRICES": '{"m": {"input": 1, "output": 2}}',
        "LARKSPUR_TOOLS__ALLOW": '["a", "b"]',
        "LARKSPUR_TOOLS__WEB_FETCH__ALLOW_PRIVATE_NETWORKS": "true",
        "LARKSPUR_AGENT__GATES": "off",
        "UNRELATED": "x",
        "XLARKSPUR_THING": "x",
    }
    settings = read(home, **environ).settings
    assert settings.llm.temperature == 1
    assert settings.llm.prices["m"].input == 1
    assert settings.tools.allow == ("a", "b")
    assert settings.tools.web_fetch.allow_private_networks is True
    assert settings.agent.gates == "off"
    assert sorted(VARIABLES.values()) == sorted(KEYS)


def test_keys_of_search_providers_come_from_their_own_variables(home: Path) -> None:
    text = "tools: {web_search: {keys: {brave: written-key, exa: written-key}}}"
    environ = {"BRAVE_API_KEY": " set-key ", "BOCHA_API_KEY": "set-key", "TAVILY_API_KEY": " "}
    loaded = read(home, text, **environ)
    search = loaded.settings.tools.web_search
    keys = {name: key.get_secret_value() for name, key in search.keys.items()}
    assert keys == {"brave": "set-key", "exa": "written-key", "bocha": "set-key"}
    assert [each.name for each in search.configured_providers()] == ["brave", "exa", "bocha"]
    rows = {row.key: row.value for row in describe(loaded)}
    assert rows["tools.web_search.keys"] == '{"brave": "set", "exa": "set", "bocha": "set"}'
    assert "written-key" not in repr(search.configured_providers())


def test_search_providers_are_asked_in_the_order_of_the_settings(home: Path) -> None:
    text = "tools: {web_search: {providers: [tavily, searxng, tavily, brave]}}"
    search = read(home, text, BRAVE_API_KEY="a", EXA_API_KEY="not valid").settings.tools.web_search
    assert [(each.name, bool(each.missing)) for each in search.configured_providers()] == [
        *(("tavily", True), ("searxng", True), ("brave", False)),
    ]
    alone = "tools: {web_search: {providers: [], searxng_url: 'http://127.0.0.1:8888/'}}"
    (searxng,) = read(home, alone).settings.tools.web_search.configured_providers()
    assert (searxng.name, searxng.address) == ("searxng", "http://127.0.0.1:8888")


def test_an_invalid_key_of_a_search_provider_is_named_by_its_variable(home: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(home, EXA_API_KEY="two words")
    assert str(caught.value) == (
        "environment EXA_API_KEY: tools.web_search.keys.exa must consist of printable ASCII"
        " characters without spaces."
    )


def test_variables_in_the_file_are_expanded(home: Path) -> None:
    text = """\
llm: {api_key: "${KEY}", prices: {m: {input: "${PRICE}", output: 1}}}
server: {port: "${PORT}"}
tools: {allow: ["${RULE}(x)", "$${RULE}", $RULE]}
agent: {workspace: "${LARKSPUR_HOME}/work"}
"""
    loaded = read(home, text, KEY="k", PORT="9", RULE="shell", PRICE="2.5")
    assert loaded.settings.llm.require_api_key().get_secret_value() == "k"
    assert loaded.settings.llm.prices["m"].input == 2.5
    assert loaded.settings.server.port == 9
    assert loaded.settings.tools.allow == ("shell(x)", "${RULE}", "$RULE")
    assert loaded.settings.agent.workspace == home / "work"


def test_settings_do_not_change(home: Path) -> None:
    with pytest.raises(ValueError, match="frozen"):
        read(home).settings.server.port = 1


# which model works


@pytest.mark.parametrize(
    ("text", "environ", "chosen"),
    [
        ("", {}, "offline offline-demo"),
        ("", {"ANTHROPIC_API_KEY": ""}, "offline offline-demo"),
        ("", {"ANTHROPIC_API_KEY": " \n"}, "offline offline-demo"),
        ("", {"ANTHROPIC_BASE_URL": "http://localhost:1"}, "offline offline-demo"),
        ("", {"ANTHROPIC_API_KEY": "k"}, "anthropic claude-sonnet-5-5"),
        ("llm: {api_key: k}", {}, "anthropic claude-sonnet-5-5"),
        ("llm: {base_url: 'http://localhost:1'}", {}, "anthropic claude-sonnet-5-5"),
        ("llm: {model: claude-x}", {}, "anthropic claude-x"),
        ("llm: {model: offline-demo}", {"ANTHROPIC_API_KEY": "k"}, "offline offline-demo"),
        ("llm: {provider: offline}", {"ANTHROPIC_API_KEY": "k"}, "offline offline-demo"),
        ("llm: {provider: anthropic}", {}, "anthropic claude-sonnet-5-5"),
        (
            "llm: {provider: offline}",
            {"LARKSPUR_LLM__PROVIDER": "anthropic"},
            "anthropic claude-sonnet-5-5",
        ),
        ("", {"OPENAI_API_KEY": "k"}, "openai gpt-6-sol"),
        ("", {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, "anthropic claude-sonnet-5-5"),
        ("", {"OPENROUTER_API_KEY": "k", "ARK_API_KEY": "k"}, "ark doubao-seed-1-8-251228"),
        ("llm: {model: x}", {"DEEPSEEK_API_KEY": "k"}, "deepseek x"),
        ("llm: {api_key: k}", {"OPENAI_API_KEY": "k"}, "anthropic claude-sonnet-5-5"),
        ("llm: {provider: ollama}", {"OPENAI_API_KEY": "k"}, "ollama gpt-oss:20b"),
    ],
)
def test_the_provider_is_configured_or_follows_from_the_available_keys(
    home: Path, text: str, environ: dict[str, str], chosen: str
) -> None:
    llm = read(home, text, **environ).settings.llm
    assert f"{llm.provider} {llm.model}" == chosen


def test_the_vendors_variables_win_over_the_file_and_lose_to_ours(home: Path) -> None:
    text = "llm: {api_key: file, base_url: 'http://file'}"
    vendor = {"ANTHROPIC_API_KEY": " vendor\n", "ANTHROPIC_BASE_URL": "http://vendor/"}
    loaded = read(home, text, **vendor)
    assert loaded.settings.llm.require_api_key().get_secret_value() == "vendor"
    assert loaded.settings.llm.base_url == "http://vendor"
    assert loaded.origins["llm.api_key"] == "environment ANTHROPIC_API_KEY"
    ours = {"LARKSPUR_LLM__API_KEY": "ours", "LARKSPUR_LLM__BASE_URL": "http://ours"}
    loaded = read(home, text, **vendor, **ours)
    assert loaded.settings.llm.require_api_key().get_secret_value() == "ours"
    assert loaded.settings.llm.base_url == "http://ours"


@pytest.mark.parametrize(
    ("environ", "url", "origin"),
    [
        ({"HTTPS_PROXY": "http://a:1"}, "http://a:1", "environment HTTPS_PROXY"),
        ({"HTTPS_PROXY": "a:1", "https_proxy": "b:2"}, "http://b:2", "environment https_proxy"),
        (
            {"HTTPS_PROXY": " ", "ALL_PROXY": "socks5://a:1"},
            "socks5://a:1",
            "environment ALL_PROXY",
        ),
        ({"HTTP_PROXY": "http://a:1"}, "", "default"),  # Lark is reached over HTTPS
        (
            {"HTTPS_PROXY": "http://a:1", "LARKSPUR_CHANNELS__LARK__PROXY": "off"},
            "",
            "environment LARKSPUR_CHANNELS__LARK__PROXY",
        ),
    ],
)
def test_the_proxy_of_lark_is_that_of_the_environment_unless_it_is_set(
    home: Path, environ: dict[str, str], url: str, origin: str
) -> None:
    loaded = read(home, **environ)
    assert loaded.settings.channels.lark.proxy_url == url
    assert loaded.origins.get("channels.lark.proxy", "default") == origin


def test_the_hosts_without_a_proxy_are_those_of_the_environment_unless_they_are_set(
    home: Path,
) -> None:
    environ = {"NO_PROXY": "localhost, .corp.example,"}
    lark = read(home, **environ).settings.channels.lark
    assert lark.no_proxy == ("localhost", ".corp.example")
    lark = read(home, "channels: {lark: {no_proxy: [a.example]}}", **environ).settings.channels.lark
    assert lark.no_proxy == ("a.example",)


@pytest.mark.parametrize(
    "proxy",
    [
        "socks5://a:1",
        "http://a:b:c",
        "ftp://a",
        "http://",
        "http://a:1/path",
        "http://[",
        "http://a:0",
    ],
)
def test_an_unusable_proxy_is_rejected_if_lark_is_enabled(home: Path, proxy: str) -> None:
    lark = f"app_id: cli_1, app_secret: s3cret-x, proxy: '{proxy}'"
    assert read(home, f"channels: {{lark: {{{lark}}}}}").settings.channels.lark.proxy_url == proxy
    said = complaint(home, f"channels: {{lark: {{enabled: true, {lark}}}}}")
    assert said.startswith("channels.lark: proxy must be off or a URL such as http://")


def test_the_password_of_a_proxy_is_never_shown(home: Path) -> None:
    loaded = read(home, "channels: {lark: {proxy: 'http://user:pass%2Dw0rd@a:1'}}")
    assert "w0rd" not in str(describe(loaded)) + repr(loaded)
    assert mask_secrets("refused pass%2Dw0rd and pass-w0rd") == "refused ••• and •••"


def test_the_offline_model_takes_no_key_from_a_vendor(home: Path) -> None:
    text = "llm: {provider: offline}"
    llm = read(home, text, ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL="http://x").settings.llm
    assert (llm.api_key, llm.base_url) == (None, None)


def test_a_missing_key_names_the_variable_to_set() -> None:
    with pytest.raises(ConfigError, match=r"anthropic needs a key: set ANTHROPIC_API_KEY or"):
        LlmSettings(provider="anthropic").require_api_key()
    with pytest.raises(ConfigError, match=r"deepseek needs a key: set DEEPSEEK_API_KEY or"):
        LlmSettings(provider="deepseek").require_api_key()


def test_a_custom_server_needs_no_key() -> None:
    own = LlmSettings(provider="openai", base_url="http://localhost:8000/v1")
    for llm in (LlmSettings(provider="ollama"), own):
        assert llm.require_api_key().get_secret_value() == ""


def test_a_fallback_gets_its_own_key_and_address_by_variable(home: Path) -> None:
    text = "llm: {fallbacks: ['openai:gpt-x', 'ark:y'], keys: {openai: file, ark: theirs}}"
    loaded = read(
        home,
        text,
        ANTHROPIC_API_KEY="a",
        OPENAI_API_KEY=" o\n",
        OPENAI_BASE_URL="http://proxy/v1/",
        DEEPSEEK_API_KEY="not a key, and not needed",
    )
    llm = loaded.settings.llm
    keys = {name: key.get_secret_value() for name, key in llm.keys.items()}
    assert (llm.provider, keys) == ("anthropic", {"openai": "o", "ark": "theirs"})
    assert llm.base_urls == {"openai": "http://proxy/v1"}
    assert loaded.keyed == {"anthropic", "openai", "deepseek"}
    rows = {row.key: row.value for row in describe(loaded)}
    assert rows["llm.keys"] == '{"openai": "set", "ark": "set"}'


def test_a_mistake_in_a_fallbacks_key_does_not_show_it(home: Path) -> None:
    text = f"llm: {{provider: offline, fallbacks: ['openai:x'], keys: {{ark: '{CANARY}'}}}}"
    said = complaint(home, text, OPENAI_API_KEY=f"{CANARY} {CANARY}")
    assert said.endswith(
        "llm.keys.openai must consist of printable ASCII characters without spaces."
    )
    assert CANARY not in said


# the address to listen on


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_local_mode_listens_on_loopback_addresses(home: Path, host: str) -> None:
    assert read(home, LARKSPUR_SERVER__HOST=host).settings.server.host == host


@pytest.mark.parametrize(
    "host",
    [
        "0.0.0.0",  # noqa: S104 - the very thing to refuse
        "::",
        "10.0.0.1",
        "::ffff:127.0.0.1",
        "localhost.example.org",
        "0",
        "[::1]",
    ],
)
def test_other_addresses_are_rejected(home: Path, host: str) -> None:
    sentence = complaint(home, LARKSPUR_SERVER__HOST=host)
    assert sentence.startswith(f"settings: server.host {host} is not a loopback address;")


# mistakes

MISTAKES = {
    # names
    "servre: {port: 1}": "HOME/config.yaml:1: servre is an unknown key; did you mean server?",
    "\nserver:\n  prot: 1": (
        "HOME/config.yaml:3: server.prot is an unknown key; did you mean server.port?"
    ),
    "port: 1": "HOME/config.yaml:1: port is an unknown key; did you mean server.port?",
    "zzzzzz: 1": "HOME/config.yaml:1: zzzzzz is an unknown key.",
    "access:\n  max_daily_cost: 1\n  talk: [ada]": (
        "HOME/config.yaml:3: access.talk is no longer a setting: it had no effect. Remove it;"
        " channels.lark.access.talk says who may submit tasks in Lark."
    ),
    "access: {operate: []}": (
        "HOME/config.yaml:1: access.operate is no longer a setting: it had no effect. Remove it;"
        " channels.lark.access.operate says who may answer questions in Lark."
    ),
    "\nauth:\n  mode: local": (
        "HOME/config.yaml:2: auth is no longer a setting: local was the only mode and still"
        " applies. Remove it."
    ),
    '"\\e[31m": 1': r"HOME/config.yaml:1: \x1b[31m is an unknown key.",
    "channels: {web: {x: 1}}": "HOME/config.yaml:1: channels.web.x is an unknown key.",
    "<<: {server: {port: 1}}": "HOME/config.yaml:1: << is an unknown key.",
    "llm:\n  prices:\n    m:\n      input: 1\n      output: 1\n      cache_raed: 1": (
        "HOME/config.yaml:6: llm.prices.m.cache_raed is an unknown key; did you mean cache_read?"
    ),
    # kinds
    "server: 8420": "HOME/config.yaml:1: server must be a mapping of keys, not a number.",
    "server: [port]": "HOME/config.yaml:1: server must be a mapping of keys, not a list.",
    "server:\n  port: abc": ("HOME/config.yaml:2: server.port must be a whole number, not 'abc'."),
    "server: {port: 1:30}": "HOME/config.yaml:1: server.port must be a whole number, not '1:30'.",
    "server: {port: 80.5}": "HOME/config.yaml:1: server.port must be a whole number, not 80.5.",
    "server: {port: true}": (
        "HOME/config.yaml:1: server.port must be a number, not true or false."
    ),
    "server: {port: 65536}": "HOME/config.yaml:1: server.port must be at most 65535, not 65536.",
    "server: {port: -1}": "HOME/config.yaml:1: server.port must be at least 0, not -1.",
    "server: {port: []}": "HOME/config.yaml:1: server.port must be a whole number, not a list.",
    "server: {port: {a: 1}}": (
        "HOME/config.yaml:1: server.port must be a whole number, not a mapping."
    ),
    "server: {port: " + "9" * 400 + "}": (
        f"HOME/config.yaml:1: server.port must be at most 65535, not '{'9' * 59}…'."
    ),
    "llm: {request_timeout_seconds: 0}": (
        "HOME/config.yaml:1: llm.request_timeout_seconds must be more than 0, not 0."
    ),
    "llm: {prices: {m: {input: 1e999, output: 1}}}": (
        "HOME/config.yaml:1: llm.prices.m.input must be a finite number, not inf."
    ),
    "llm: {model: 4}": "HOME/config.yaml:1: llm.model must be text, not 4.",
    "audio: {transcription: {model: whisper-1}}": "audio.transcription: model"
    " needs an api_key, or the base_url of a service without one.",
    "audio: {transcription: {language: Chinese}}": "HOME/config.yaml:1:"
    " audio.transcription.language must be a code such as zh or en.",
    "llm: {model: ' '}": "HOME/config.yaml:1: llm.model must not be blank.",
    "llm: {provider: acme}": (
        "HOME/config.yaml:1: llm.provider must be anthropic, openai, ark, deepseek, openrouter,"
        " qwen, kimi, glm, minimax, gemini, mistral, xai, azure, bedrock, vertex, foundry, ollama"
        " or offline, not 'acme'."
    ),
    "llm: {provider: [a]}": (
        "HOME/config.yaml:1: llm.provider must be anthropic, openai, ark, deepseek, openrouter,"
        " qwen, kimi, glm, minimax, gemini, mistral, xai, azure, bedrock, vertex, foundry, ollama"
        " or offline, not a list."
    ),
    "llm: {keys: {acme: k}}": (
        "HOME/config.yaml:1: llm.keys.acme must be one of anthropic, openai, ark, deepseek,"
        " openrouter, qwen, kimi,"
        " glm, minimax, gemini, mistral, xai, azure, bedrock, vertex, foundry, ollama."
    ),
    "llm: {keys: {openai: a b}}": (
        "HOME/config.yaml:1: llm.keys.openai must consist of printable ASCII characters"
        " without spaces."
    ),
    "llm: {base_urls: {openai: x}}": (
        "HOME/config.yaml:1: llm.base_urls.openai must be a URL such as https://example.org."
    ),
    "llm: {tool_calls: maybe}": (
        "HOME/config.yaml:1: llm.tool_calls must be native or text, not 'maybe'."
    ),
    "agent: {gates: no}": (
        "HOME/config.yaml:1: agent.gates must be adaptive, strict, advisory or off, not 'no'."
    ),
    "agent: {gates: false}": (
        "HOME/config.yaml:1: agent.gates must be adaptive, strict, advisory or off, not false."
    ),
    "tools: {allow: read_file}": "HOME/config.yaml:1: tools.allow must be a list, not 'read_file'.",
    "tools:\n  allow:\n  - a\n  - 5": ("HOME/config.yaml:4: tools.allow.1 must be text, not 5."),
    "tools: {allow: [~]}": "HOME/config.yaml:1: tools.allow.0 must be text, not nothing.",
    "tools: {web_fetch: {allow_private_networks: maybe}}": (
        "HOME/config.yaml:1: tools.web_fetch.allow_private_networks must be true or false,"
        " not 'maybe'."
    ),
    "tools: {web_search: {providers: [bing]}}": (
        "HOME/config.yaml:1: tools.web_search.providers.0 must be one of searxng, brave, tavily,"
        " exa, bocha."
    ),
    "tools: {web_search: {keys: {searxng: a}}}": (
        "HOME/config.yaml:1: tools.web_search.keys.searxng must be one of brave, tavily, exa,"
        " bocha."
    ),
    "tools: {web_search: {keys: {brave: ''}}}": (
        "HOME/config.yaml:1: tools.web_search.keys.brave must not be blank."
    ),
    "tools: {web_search: {timeout_seconds: 31}}": (
        "HOME/config.yaml:1: tools.web_search.timeout_seconds must be at most 30, not 31."
    ),
    "tools: {web_search: {cache_minutes: -1}}": (
        "HOME/config.yaml:1: tools.web_search.cache_minutes must be at least 0, not -1."
    ),
    "tools: {web_search: {searxng_url: 'http://a:b@host'}}": (
        "HOME/config.yaml:1: tools.web_search.searxng_url must not contain a user name or a"
        " password."
    ),
    "llm: {prices: 5}": "HOME/config.yaml:1: llm.prices must be a mapping, not 5.",
    "llm: {prices: {m: 5}}": "HOME/config.yaml:1: llm.prices.m must be a mapping, not 5.",
    "llm: {prices: {m: {input: 1}}}": "HOME/config.yaml:1: llm.prices.m.output is missing.",
    "llm: {prices: {m: {input: x, output: 1}}}": (
        "HOME/config.yaml:1: llm.prices.m.input must be a number, not 'x'."
    ),
    # meanings
    "llm: {base_url: example.org}": (
        "HOME/config.yaml:1: llm.base_url must be a URL such as https://example.org."
    ),
    "llm: {base_url: 'http://[::1'}": (
        "HOME/config.yaml:1: llm.base_url must be a URL such as https://example.org."
    ),
    "llm: {base_url: 'http://x:99999'}": (
        "HOME/config.yaml:1: llm.base_url must be a URL such as https://example.org."
    ),
    "llm: {base_url: 'http://x/?key=1'}": (
        "HOME/config.yaml:1: llm.base_url must not contain a query or a fragment."
    ),
    "llm: {fallbacks: [claude-x]}": (
        "HOME/config.yaml:1: llm.fallbacks.0 must have the form provider:model,"
        " such as openai:gpt-6-sol."
    ),
    "llm: {provider: offline, model: claude-x}": (
        "llm: provider is offline, which has no model claude-x; set both or neither."
    ),
    "llm: {provider: anthropic, model: offline-demo}": (
        "llm: provider is anthropic, which has no model offline-demo; set both or neither."
    ),
    "llm: {max_output_tokens: 9, context_window: 9}": (
        "llm: max_output_tokens must be smaller than context_window."
    ),
    "agent: {workspace: here}": (
        "HOME/config.yaml:1: agent.workspace must be an absolute path, or one that starts with ~."
    ),
    "agent: {workspace: ~nobody-of-that-name/x}": (
        "HOME/config.yaml:1: agent.workspace must be an absolute path, or one that starts with ~."
    ),
    "database: {url: 'sqlite:///larkspur.db'}": (
        "HOME/config.yaml:1: database.url must be sqlite:/// and an absolute path,"
        " such as sqlite:////srv/a.db, or postgresql://USER:PASSWORD@HOST:PORT/NAME."
    ),
    "database: {url: 'postgresql://me:secret@/x'}": (
        "HOME/config.yaml:1: database.url names no host;"
        " use postgresql://USER:PASSWORD@HOST:PORT/NAME."
    ),
    "database: {url: 'postgresql://me:secret@db'}": (
        "HOME/config.yaml:1: database.url names no database;"
        " use postgresql://USER:PASSWORD@HOST:PORT/NAME."
    ),
    "database: {url: 'postgresql://me:secret@db:port/x'}": (
        "HOME/config.yaml:1: database.url is malformed;"
        " use postgresql://USER:PASSWORD@HOST:PORT/NAME."
    ),
    "attachments: {store: s3, s3: {endpoint: 'http://127.0.0.1:9000', bucket: files}}": (
        "attachments: store is s3, but s3.access_key and s3.secret_key are not set."
    ),
    "attachments: {s3: {endpoint: 'https://s3.example.org/files'}}": (
        "HOME/config.yaml:1: attachments.s3.endpoint must be an origin without a path, such as"
        " https://example.org."
    ),
    "attachments: {s3: {bucket: My Files}}": (
        "HOME/config.yaml:1: attachments.s3.bucket must be the name of a bucket: 3 to 63 lower-case"
        " letters, digits, dots and hyphens."
    ),
    "attachments: {s3: {prefix: ../other}}": (
        "HOME/config.yaml:1: attachments.s3.prefix must consist of letters, digits, dots, hyphens,"
        " underscores and slashes, without a slash at an end."
    ),
    "attachments: {max_file_bytes: 104857601}": (
        "HOME/config.yaml:1: attachments.max_file_bytes must be at most 104857600, not 104857601."
    ),
    "server: {host: 0.0.0.0}": (
        "settings: server.host 0.0.0.0 is not a loopback address; only 127.0.0.1, ::1"
        " and localhost are."
    ),
    # ${VARIABLE}
    "server:\n  port: ${NOWHERE}": (
        "HOME/config.yaml:2: server.port: ${NOWHERE} is not set in the environment."
    ),
    "tools: {allow: [a, '${}']}": (
        "HOME/config.yaml:1: tools.allow: ${} is not set in the environment."
    ),
    # YAML
    "- a": "HOME/config.yaml: settings must be a mapping, such as `server:` with keys below it.",
    "hello": "HOME/config.yaml: settings must be a mapping, such as `server:` with keys below it.",
    "server:\n\tport: 1": (
        "HOME/config.yaml:2: invalid YAML: tabs are not allowed here; use spaces."
    ),
    "server: {port: 1": (
        "HOME/config.yaml:1: invalid YAML: expected ',' or '}', but got '<stream end>'."
    ),
    "a: b: c": "HOME/config.yaml:1: invalid YAML: mapping values are not allowed here.",
    "a: 1\n---\nb: 1": ("HOME/config.yaml:2: invalid YAML: only one document is allowed."),
    "server:\n  port: 1\n  port: 2": "HOME/config.yaml:3: the key port is a duplicate.",
    "[a]: 1": "HOME/config.yaml:1: a key must be a scalar.",
    "server: &s {port: 1}\nllm: *s": (
        "HOME/config.yaml:1: anchors are not supported; repeat the value."
    ),
    "a: &a [*a]": "HOME/config.yaml:1: anchors are not supported; repeat the value.",
    "a: *a": "HOME/config.yaml:1: invalid YAML: found undefined alias 'a'.",
    "a: !!python/object/apply:os.system [ls]": (
        "HOME/config.yaml:1: tags such as !this are not supported."
    ),
    "a: \x01": "HOME/config.yaml: it contains a control character.",
    "[" * 5_000: "HOME/config.yaml: it is nested too deeply.",
}


@pytest.mark.parametrize(("text", "sentence"), MISTAKES.items(), ids=range(len(MISTAKES)))
def test_a_mistake_in_the_file_is_one_sentence(home: Path, text: str, sentence: str) -> None:
    assert complaint(home, text) == sentence


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        (
            "LARKSPUR_SERVER_PORT",
            "1",
            (
                "Unknown environment variable LARKSPUR_SERVER_PORT;"
                " did you mean LARKSPUR_SERVER__PORT?"
            ),
        ),
        (
            "LARKSPUR_HOEM",
            "1",
            "Unknown environment variable LARKSPUR_HOEM; did you mean LARKSPUR_HOME?",
        ),
        (
            "LARKSPUR_0123456789",
            "1",
            "Unknown environment variable LARKSPUR_0123456789.",
        ),
        (
            "LARKSPUR_UI_LANGUAGE",
            "zh",
            (
                "Unknown environment variable LARKSPUR_UI_LANGUAGE;"
                " did you mean LARKSPUR_UI__LANGUAGE?"
            ),
        ),
        (
            "LARKSPUR_SERVER__PORT",
            "eighty",
            "environment LARKSPUR_SERVER__PORT: server.port must be a whole number, not 'eighty'.",
        ),
        (
            "LARKSPUR_SERVER__PORT",
            "",
            "environment LARKSPUR_SERVER__PORT: server.port must be a whole number, not ''.",
        ),
        (
            "LARKSPUR_TOOLS__ALLOW",
            "read_file",
            (
                "environment LARKSPUR_TOOLS__ALLOW: a list or a mapping must be written as JSON,"
                ' such as ["one", "two"].'
            ),
        ),
        (
            "LARKSPUR_TOOLS__ALLOW",
            "[" * 100_000,
            (
                "environment LARKSPUR_TOOLS__ALLOW: a list or a mapping must be written as JSON,"
                ' such as ["one", "two"].'
            ),
        ),
        (
            "LARKSPUR_TOOLS__ALLOW",
            "{}",
            "environment LARKSPUR_TOOLS__ALLOW: tools.allow must be a list, not a mapping.",
        ),
        (
            "LARKSPUR_LLM__API_KEY",
            " ",
            "environment LARKSPUR_LLM__API_KEY: llm.api_key must not be blank.",
        ),
        (
            "LARKSPUR_AGENT__PROFILE",
            "\udcff",
            "environment LARKSPUR_AGENT__PROFILE: agent.profile must be one line of text in UTF-8.",
        ),
        (
            "LARKSPUR_AUTH__MODE",
            "local",
            (
                "environment LARKSPUR_AUTH__MODE: auth.mode is no longer a setting: local was the"
                " only mode and still applies. Remove it."
            ),
        ),
        (
            "LARKSPUR_ACCESS__TALK",
            '["ada"]',
            (
                "environment LARKSPUR_ACCESS__TALK: access.talk is no longer a setting: it had no"
                " effect. Remove it; channels.lark.access.talk says who may submit tasks in Lark."
            ),
        ),
        ("LARKSPUR_CONFIG", " ", "The name of the configuration file is blank."),
    ],
)
def test_a_mistake_in_a_variable_is_one_sentence(
    home: Path, name: str, value: str, sentence: str
) -> None:
    assert complaint(home, **{name: value}) == sentence


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({"server": {"port": 70_000}}, "flag: server.port must be at most 65535, not 70000."),
        (
            {"server": {"prot": 1}},
            "flag: server.prot is an unknown key; did you mean server.port?",
        ),
        ({"server": 1}, "flag: server must be a mapping of keys, not a number."),
    ],
)
def test_a_mistake_in_a_flag_is_one_sentence(
    home: Path, flags: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(environ={"LARKSPUR_HOME": str(home)}, flags=flags)
    assert str(caught.value) == sentence


def _too_long(file: Path) -> None:
    file.write_text("# " + "x" * 300_000)


def _loop(file: Path) -> None:
    file.symlink_to(file.name)


def _dangling(file: Path) -> None:
    file.symlink_to("nowhere")


def _not_unicode(file: Path) -> None:
    file.write_bytes(b"ui: {language: \xff}")


@pytest.mark.parametrize(
    ("lay", "sentence"),
    [
        (Path.mkdir, r"is not a file\."),
        (os.mkfifo, r"is not a file\."),
        (_loop, r"cannot be read: Too many levels of symbolic links\."),
        (_dangling, r"config\.yaml cannot be read: No such file or directory\."),
        (_not_unicode, r"is not UTF-8 \(byte 15\)\."),
        (_too_long, r"is larger than 262144 bytes\."),
    ],
)
def test_a_file_that_cannot_be_read(home: Path, lay: Callable[[Path], None], sentence: str) -> None:
    lay(home / "config.yaml")
    with pytest.raises(ConfigError, match=sentence):
        load(environ={"LARKSPUR_HOME": str(home)})


@pytest.mark.parametrize("name", ["nowhere.yaml", "config.yaml/below", "nul\0.yaml", " "])
def test_a_named_file_must_exist(home: Path, name: str) -> None:
    written(home, "")
    with pytest.raises(ConfigError, match=r"configuration file"):
        load(config=home / name if name.strip() else name, environ={"LARKSPUR_HOME": str(home)})


def test_a_file_that_may_not_be_read() -> None:
    nobody = 65_534
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "config.yaml")
        file.touch(mode=0)
        root = os.geteuid() == 0
        if root:
            Path(folder).chmod(0o755)
            os.seteuid(nobody)
        try:
            with pytest.raises(ConfigError, match=r"cannot be read: Permission denied\."):
                load(config=file, environ={"LARKSPUR_HOME": folder})
        finally:
            if root:
                os.seteuid(0)


def test_an_invalid_home_folder() -> None:
    with pytest.raises(HomeError, match="blank"):
        load(environ={"LARKSPUR_HOME": ""})


@given(st.text(max_size=60))
def test_any_text_is_valid_settings_or_a_one_sentence_error(text: str) -> None:
    try:
        assert isinstance(parse(text, "file").values, dict)
    except ConfigError as error:
        assert str(error).isprintable()  # noqa: PT017 - either outcome is right, and it has a form


# secrets


@pytest.mark.parametrize(
    ("text", "environ"),
    [
        (f"llm: {{api_key: {CANARY}}}", {}),
        ("llm: {api_key: '${KEY}'}", {"KEY": CANARY}),
        ("", {"LARKSPUR_LLM__API_KEY": CANARY}),
        ("", {"ANTHROPIC_API_KEY": CANARY}),
    ],
)
def test_a_secret_is_read_and_never_shown(home: Path, text: str, environ: dict[str, str]) -> None:
    loaded = read(home, text, **environ)
    assert loaded.settings.llm.require_api_key().get_secret_value() == CANARY
    rows = describe(loaded)
    assert next(row.value for row in rows if row.key == "llm.api_key") == "set"
    shown = f"{rows} {loaded!r} {loaded.settings} {loaded.settings.model_dump_json()}"
    assert CANARY not in shown


@pytest.mark.parametrize(
    ("text", "environ"),
    [
        (f"llm: {{api_key: '{CANARY} {CANARY}'}}", {}),
        (f"llm: {{api_key: [{CANARY}]}}", {}),
        (f"llm: {{api_key: {{{CANARY}: 1}}}}", {}),
        (f'llm: {{api_key: "{CANARY}\\n{CANARY}"}}', {}),
        (f"llm: {{api_key: {CANARY}, modle: x}}", {}),
        (f"llm: {{api_key: {CANARY}}}\nserver: {{port: x}}", {}),
        (f"llm: {{api_key: {CANARY}, max_retries: -1}}", {}),
        (f"llm: {CANARY}", {}),
        (f"api_kye: {CANARY}", {}),
        (f"llm: {{api_key: {CANARY}: x}}", {}),
        (f"llm: {{api_key: '{CANARY}", {}),
        (f"llm: {{api_key: {CANARY}\tx, \t", {}),
        (f"llm: {{base_url: 'https://me:{CANARY}@example.org'}}", {}),
        (f"database: {{url: 'postgresql://me:{CANARY}@/x'}}", {}),
        ("server: {port: '${KEY}'}", {"KEY": CANARY}),
        ("agent: {gates: '${KEY}'}", {"KEY": CANARY}),
        ("server: {'${KEY}': 1}", {"KEY": CANARY}),
        ("", {"LARKSPUR_LLM__API_KEY": f"{CANARY}\x1b"}),
        ("", {"ANTHROPIC_API_KEY": f"{CANARY} é"}),
        ("", {"LARKSPUR_LLM__API_KYE": CANARY}),
        ("", {"LARKSPUR_LLM__API_KEY": CANARY, "LARKSPUR_LLM__CONCURRENCY": "none"}),
    ],
)
def test_error_messages_never_contain_a_secret(
    home: Path, text: str, environ: dict[str, str]
) -> None:
    written(home, text)
    with pytest.raises(ConfigError) as caught:
        load(environ={"LARKSPUR_HOME": str(home), **environ})
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None or CANARY not in repr(caught.value.__context__)


# show


def test_every_key_is_shown_with_its_origin(home: Path) -> None:
    text = (
        "ui:\n  language: zh\n"
        "llm:\n  prices: {m: {input: 1, output: 2}}\n  fallbacks: ['offline:x']"
    )
    rows = {row.key: row for row in describe(read(home, text, LARKSPUR_AGENT__PROFILE="a\u202eb"))}
    assert list(rows) == list(KEYS)
    file = f"{home}/config.yaml"
    assert rows["ui.language"] == Row("ui.language", "zh", f"{file}:2")
    assert rows["llm.prices"].value == (
        '{"m": {"input": 1.0, "output": 2.0, "cache_read": 0.0, "cache_write": 0.0}}'
    )
    assert rows["llm.fallbacks"] == Row("llm.fallbacks", '["offline:x"]', f"{file}:5")
    assert rows["agent.profile"].value == r"a\u202eb"
    assert rows["llm.api_key"] == Row("llm.api_key", "not set", "default")
    assert rows["llm.temperature"].value == "not set"
    assert rows["agent.tool_timeout_seconds"].value == "120"
    assert rows["tools.web_fetch.allow_private_networks"].value == "false"
    assert rows["database.url"].value == f"sqlite:///{home}/larkspur.db"


def test_the_models_stand_alone() -> None:
    assert Settings().llm.provider == "offline"
    assert LlmSettings(provider="anthropic").model == "claude-sonnet-5-5"


def test_a_key_that_takes_a_word_or_a_list_takes_both_from_a_variable(home: Path) -> None:
    def network(text: str) -> object:
        return read(home, LARKSPUR_SANDBOX__NETWORK=text).settings.sandbox.network

    assert network("registries") == "registries"
    assert network('["github.com", "*.corp.cn"]') == ("github.com", "*.corp.cn")
    said = complaint(home, LARKSPUR_SANDBOX__NETWORK="wide")
    name = "environment LARKSPUR_SANDBOX__NETWORK: sandbox.network"
    assert said == f"{name} must be off, registries or open, not 'wide'."
    assert "must be written as JSON" in complaint(home, LARKSPUR_SANDBOX__NETWORK="[a]")


def test_entries_of_servers_are_hidden_and_expanded_where_they_are_used(home: Path) -> None:
    text = "mcp: {servers: {git: {command: git-mcp, env: {KEY: '${GIT_KEY}'}}}}"
    loaded = read(home, text, GIT_KEY="canary")
    entry = loaded.settings.mcp.servers["git"].get_secret_value()
    assert entry == {"command": "git-mcp", "env": {"KEY": "${GIT_KEY}"}}
    assert loaded.expand(entry, "here")["env"] == {"KEY": "canary"}
    with pytest.raises(ConfigError, match=r"here: \$\{NONE\} is not set"):
        loaded.expand(["${NONE}"], "here")
    (row,) = [each for each in describe(loaded) if each.key == "mcp.servers"]
    assert row.value == '{"git": "set"}'
    assert "canary" not in repr(loaded)
