"""Settings of hooks and webhooks: accepted values, and the sentences about all others."""

import json
from pathlib import Path
from typing import Any

import pytest

from internal.config.inspect import describe
from internal.config.loader import Loaded, load
from internal.settings.types import ConfigError

COMMAND = {"command": ["check"]}


def loaded(home: Path, **variables: Any) -> Loaded:
    given = {f"LARKSPUR_{name.upper()}": json.dumps(value) for name, value in variables.items()}
    return load(environ={"LARKSPUR_HOME": str(home), **given})


@pytest.mark.parametrize(
    ("hook", "sentence"),
    [
        ({"event": "before_tools", **COMMAND}, "hooks.0.event must be message_received,"),
        ({"event": "before_tool"}, "needs either a command or a url"),
        (
            {"event": "before_tool", **COMMAND, "url": "https://a.example"},
            "needs either a command or a url",
        ),
        ({"event": "before_tool", "command": ["./check"]}, "an absolute path"),
        ({"event": "before_tool", **COMMAND, "secret": "s"}, "secret is for a url"),
        ({"event": "run_ended", **COMMAND, "match": "shell"}, "match is for before_tool"),
        ({"event": "before_tool", **COMMAND, "match": "shell("}, "is not a rule"),
        ({"event": "after_tool", **COMMAND, "on_failure": "refuse"}, "refuse is for before_tool"),
        ({"event": "before_tool", "url": "ftp://a.example"}, "must be a URL such as"),
        ({"event": "before_tool", "url": "https://u:p@a.example"}, "a user name or a password"),
        ({"event": "before_tool", **COMMAND, "timeout_seconds": 601}, "must be at most 600"),
        ({"event": "before_tool", **COMMAND, "timeout_second": 1}, "did you mean timeout_seconds?"),
        ({**COMMAND}, "hooks.0.event is missing."),
        ("check", "must be a mapping"),
    ],
)
def test_a_hook_that_cannot_be_used_is_explained(home: Path, hook: Any, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(home, hooks=[hook])
    assert sentence in str(caught.value)


def test_the_failure_of_a_hook_that_may_refuse_refuses(home: Path) -> None:
    events = ("message_received", "before_tool", "after_tool", "run_ended")
    hooks = loaded(home, hooks=[{"event": event, **COMMAND} for event in events]).settings.hooks
    assert [hook.refuses_on_failure for hook in hooks] == [True, True, False, False]
    kept = {"event": "before_tool", **COMMAND, "on_failure": "continue"}
    assert not loaded(home, hooks=[kept]).settings.hooks[0].refuses_on_failure


@pytest.mark.parametrize(
    ("hook", "title", "files"),
    [
        ({"command": ["python3", "/srv/check.py", "-v"]}, "check.py", ["/srv/check.py"]),
        ({"command": ["/usr/bin/python3", "/srv/check.py"]}, "check.py", ["/srv/check.py"]),
        ({"command": ["/srv/check"]}, "check", ["/srv/check"]),
        ({"command": ["/usr/bin/true"]}, "true", []),
        (
            {"command": ["/srv/a.sh", "--data=/srv/data", "/srv/rules.json"]},
            "a.sh",
            ["/srv/a.sh", "/srv/rules.json", "/srv/data"],
        ),
        ({"command": ["/libs/a.sh", "/usr/../b.sh"]}, "a.sh", ["/libs/a.sh", "/usr/../b.sh"]),
        ({"url": "https://a.example:8/b?c=d"}, "a.example:8", []),
        ({"url": "https://a.example", "name": "far"}, "far", []),
    ],
)
def test_a_hook_has_a_title_and_files(
    home: Path, hook: dict[str, Any], title: str, files: list[str]
) -> None:
    [made] = loaded(home, hooks=[{"event": "run_ended", **hook}]).settings.hooks
    assert (made.title, list(map(str, made.files))) == (title, files)


@pytest.mark.parametrize(
    ("webhook", "sentence"),
    [
        ({"secret": "s", "events": ["*"]}, "webhooks.0.url is missing."),
        ({"url": "https://a.example", "events": ["*"]}, "webhooks.0.secret is missing."),
        ({"url": "https://a.example", "secret": " ", "events": ["*"]}, "must not be blank"),
        ({"url": "https://a.example", "secret": "s"}, "webhooks.0.events is missing."),
        ({"url": "https://a.example", "secret": "s", "events": ["run_ended"]}, "no stored event"),
    ],
)
def test_a_webhook_that_cannot_be_used_is_explained(
    home: Path, webhook: Any, sentence: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(home, webhooks=[webhook])
    assert sentence in str(caught.value)


def test_a_receiver_is_named_once(home: Path) -> None:
    webhook = {"url": "https://a.example", "secret": "s", "events": ["*"]}
    with pytest.raises(ConfigError, match="webhooks must not name a url twice"):
        loaded(home, webhooks=[webhook, webhook])


def test_secrets_are_not_shown(home: Path) -> None:
    webhook = {"url": "https://a.example", "secret": "canary-1", "events": ["*"]}
    hook = {"event": "run_ended", "url": "https://a.example", "secret": "canary-2"}
    rows = {row.key: row.value for row in describe(loaded(home, hooks=[hook], webhooks=[webhook]))}
    assert "canary" not in rows["hooks"] + rows["webhooks"]
    assert '"secret": "set"' in rows["webhooks"]
    with pytest.raises(ConfigError) as caught:
        loaded(home, webhooks=[{**webhook, "events": "canary-3", "timeout_seconds": "canary-4"}])
    assert "canary" not in str(caught.value)


def test_a_list_that_is_empty_has_no_events(home: Path) -> None:
    webhook = {"url": "https://a.example", "secret": "s", "events": []}
    with pytest.raises(ConfigError, match="must name an event"):
        loaded(home, webhooks=[webhook])
