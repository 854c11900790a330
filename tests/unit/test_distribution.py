"""The name of the distribution: the same in all texts, and never the name of another one.

The public index has a package `larkspur`, which is a different project, and no `larkspur-gateway`.
An install command of ours therefore names the file of the wheel.
"""

import re
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from larkspur.version import VERSION
from tests import ROOT
from tests.support.tracked_files import tracked_files

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = set(PROJECT["optional-dependencies"])
OURS = re.compile(r"(?:\S*/)?(larkspur[\w.-]*)(?:\[([\w, -]*)\])?(?:[<>=!~@]\S*)?", re.IGNORECASE)
"""A word that asks for a distribution: a name or the file of a wheel, with extras or a version."""
WHEEL = re.compile(r"(?:\S*/)larkspur_gateway-[\w.]+-py3-none-any\.whl(?:\[([\w, -]*)\])?")
WITH_EXTRAS = re.compile(r"(?<![\w./-])(larkspur[\w.-]*)\[([a-z][\w, -]*)\]", re.IGNORECASE)
COMMAND = re.compile(
    r"\b(uvx|(?:uv tool|pipx) (?:run|install|upgrade|inject)|pip3? (?:install|download|wheel)"
    r"|(?:uv|poetry|pdm) add)\b([^\n`|;&#()]*)"
)
RUNS = re.compile(r"uvx|(?:uv tool|pipx) run")
"""Commands that install a distribution to run a command; only options name the distribution."""
LIST = re.compile(r"""["'],\s*["']""")


def wrong_names(text: str) -> Iterator[str]:
    """Yield the names under which a text installs the product, apart from our wheel.

    Commands may continue on the next line, or be lists of words in a program.
    """
    if "larkspur" not in text.lower():
        return
    for name, extras in WITH_EXTRAS.findall(text):
        if name != PROJECT["name"] or not are_known(extras):
            yield f"{name}[{extras}]"
    joined = re.sub(r"\\\n\s*", " ", text)
    # the end of a list of words or of a sentence is no part of the last word
    joined = re.sub(r"(?<=[\"'])\](?!\w)|[.,:](?=\s|$)", " ", LIST.sub(" ", joined))
    for command, words in COMMAND.findall(re.sub("[\"']", "", joined)):
        for word in distributions(command, words.split()):
            if OURS.fullmatch(word) and not is_our_wheel(word):
                yield word


def are_known(extras: str) -> bool:
    return set(re.split(r", *", extras)) <= EXTRAS


def distributions(command: str, words: list[str]) -> list[str]:
    """Return the words of an install command that can name a distribution."""
    plain = [word for word in words if not word.startswith("-")]
    if not RUNS.match(command):
        return plain
    named = [
        word.partition("=")[2] or following
        for word, following in pairwise([*words, ""])
        if re.match("--(?:from|spec|with)(?:=|$)", word)
    ]
    return named or plain[:1]


def is_our_wheel(word: str) -> bool:
    found = WHEEL.fullmatch(word)
    return found is not None and (found[1] is None or are_known(found[1]))


def test_no_text_installs_another_distribution() -> None:
    here = Path(__file__)  # its examples are such texts
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in tracked_files()
        if path != here
        for name in wrong_names(path.read_text(encoding="utf-8", errors="replace"))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "text",
    [
        "pip install larkspur",
        "pip install 'larkspur[mcp]'",
        "Install larkspur[s3].",
        "install larkspur-gateway[nonsense]",
        "pip install larkspur-gateway",  # nobody owns the name on the index
        "pip install 'larkspur-gateway[mcp]==0.1.0'",
        "python -m pip install --upgrade --quiet larkspur==0.2.4",
        "pip download larkspur",
        "uv pip install Larkspur",
        "uv add larkspur",
        "uv tool install \\\n    larkspur",
        "pipx install larkspur_sdk",
        "pipx run larkspur serve",
        "uvx larkspur serve",
        "uvx --from larkspur larkspur serve",
        "uvx --from=larkspur larkspur serve",
        "uv tool run --quiet larkspur",
        "pip install ./larkspur-0.1.0-py3-none-any.whl",
        'run(["uv", "tool", "install", "larkspur"])',
        "run('uv', 'pip', 'install', 'larkspur')",
    ],
)
def test_the_check_finds_other_distributions(text: str) -> None:
    assert list(wrong_names(text))


@pytest.mark.parametrize(
    "text",
    [
        "pip install ./larkspur_gateway-0.1.0a1-py3-none-any.whl",
        "pip install --upgrade './larkspur_gateway-0.1.0-py3-none-any.whl[mcp,postgres]'",
        "uv tool install dist/larkspur_gateway-0.1.0a1-py3-none-any.whl",
        "uvx --from ./larkspur_gateway-0.1.0a1-py3-none-any.whl larkspur serve --open",
        "install the extra larkspur-gateway[mcp]",
        "pip uninstall larkspur",
        "uv run larkspur serve",
        "uvx mcp-server-time, then start larkspur",
        "`pipx install` with the file, and larkspur runs",
        "larkspur[0]",
    ],
)
def test_the_check_accepts_our_wheel(text: str) -> None:
    assert list(wrong_names(text)) == []


def test_the_name_and_the_version_are_those_of_the_project() -> None:
    assert (PROJECT["name"], PROJECT["version"]) == ("larkspur-gateway", VERSION)
    assert PROJECT["scripts"] == {"larkspur": "larkspur.main:run"}
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    named = {
        version
        for page in pages
        if page.name not in {"upgrade.md", "upgrade.zh.md"}  # they name the next one
        for version in re.findall(
            r"larkspur_gateway-([\w.]+)-py3", page.read_text(encoding="utf-8")
        )
    }
    assert named == {VERSION}
