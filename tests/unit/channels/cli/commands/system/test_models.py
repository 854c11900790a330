"""`larkspur models`."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from internal.agent.domain.lessons import Lesson
from internal.agent.store.stores import Stores
from internal.model_providers.registry import PROVIDERS
from internal.storage.database_url import open_database
from tests.support.command_runner import CommandRunner


def test_model_in_use_is_marked(run: CommandRunner) -> None:
    listed = run("models", "--json").json
    assert [one["provider"] for one in listed if one["in_use"]] == ["offline"]
    assert {one["provider"] for one in listed} == {provider.name for provider in PROVIDERS}


def test_text_has_a_header_and_the_date_of_the_prices(run: CommandRunner) -> None:
    first, *_, last = run("models").out.splitlines()
    assert first.split()[:3] == ["provider", "model", "key"]
    assert "List prices as of" in last


BLIND = Lesson(
    provider="openai",
    address="http://127.0.0.1:8000/v1",
    model="qwen",
    kind="picture",
    change={"pictures": False},
    words="qwen is not a multimodal model",
    learned="2026-11-28T10:00:00.000Z",
)
ODD = replace(BLIND, kind="tool_schema", name="mcp__case__odd", change={}, words="no items")
SMALL = replace(BLIND, model="", kind="body_size", change={"max_body_bytes": 1_000_000})


@pytest.fixture
def learned(home: Path) -> None:
    """Lessons in the database of the home folder."""

    async def save() -> None:
        async with open_database(str(home / "larkspur.db")) as database:
            await database.write(partial(Stores().lessons.save, [BLIND, ODD, SMALL]))

    asyncio.run(save())


def test_nothing_was_refused(run: CommandRunner) -> None:
    shown = run("models", "show")
    assert (shown.code, shown.out) == (0, "")
    assert "No model server has refused" in shown.err
    assert "Forgotten: 0." in run("models", "forget").err


@pytest.mark.usefixtures("learned")
def test_what_was_refused_is_shown_with_the_words_of_the_server(run: CommandRunner) -> None:
    out = run("models", "show").out
    for part in ("2026-11-28", "qwen", "http://127.0.0.1:8000/v1", "pictures: False"):
        assert part in out
    assert "qwen is not a multimodal model" in out
    assert "(all models)" in out
    shown = run("models", "show", "other", "--json").json
    assert [one["refused"] for one in shown["refused"]] == ["body_size"]


@pytest.mark.usefixtures("learned")
def test_lessons_about_one_model_or_all_are_forgotten(run: CommandRunner) -> None:
    assert "Forgotten: 2." in run("models", "forget", "qwen").err
    assert len(run("models", "show", "--json").json["refused"]) == 1
    assert "Forgotten: 1." in run("models", "forget").err


@pytest.mark.usefixtures("learned")
def test_doctor_names_a_refused_tool_its_server_and_the_words(run: CommandRunner) -> None:
    checks = run("doctor", "--json").json
    [check] = [each for each in checks if each["name"] == "tools"]
    assert "mcp__case__odd of case" in check["sentence"]
    assert "no items" in check["sentence"]
    assert check["advice"] == "larkspur models forget qwen tries it again."


def test_repaired_calls_are_shown_by_model(run: CommandRunner, home: Path) -> None:
    async def save() -> None:
        async with open_database(str(home / "larkspur.db")) as database:
            for model, *kinds in (("qwen", "null", "null"), ("qwen", "tool_name"), ("glm", "null")):
                add = Stores().call_repairs.add
                now = "2026-11-28T10:00:00.000Z"
                await database.write(partial(add, "openai", model, kinds, now=now))

    asyncio.run(save())
    assert run("models", "show", "qwen").out == (
        "2026-11-28  qwen  openai  calls repaired: null 2, tool_name 1\n"
    )
    shown = run("models", "show", "--json").json
    assert [(one["model"], one["kinds"]) for one in shown["repaired"]] == [
        ("glm", {"null": 1}),
        ("qwen", {"null": 2, "tool_name": 1}),
    ]


def test_a_model_without_an_action_is_a_mistake(run: CommandRunner) -> None:
    assert run("models", "qwen").code == 2
