"""`/context` in a real terminal: a row for each part of the last request."""

from pathlib import Path

import pytest

from tests.support.cli_environment import GATEWAY
from tests.support.scripted_model import Call, Reply
from tests.support.terminal_session import open_terminal

TITLES = [
    "rules and profile",
    "the owner's AGENTS.md",
    "AGENTS.md",
    "list of skills",
    "tools",
    "loaded skills",
    "conversation",
    "free",
    "reserved for the reply",
]


def table(rows: list[str], titles: list[str]) -> dict[str, tuple[str, ...]]:
    """Return the other cells of the last row that begins with each title."""
    found: dict[str, tuple[str, ...]] = {}
    for row in rows:
        for title in titles:
            if row.startswith(f"{title}  "):
                found[title] = tuple(row.removeprefix(title).split())
    return found


def tokens(cell: str) -> float:
    return float(cell[:-1]) * 1_000 if cell.endswith("k") else float(cell)


@GATEWAY
@pytest.mark.parametrize("size", [(60, 40), pytest.param((120, 40), marks=pytest.mark.slow)])
@pytest.mark.slow
async def test_every_part_has_a_row_that_fits_and_the_rows_add_up(
    way: str, size: tuple[int, int], home: Path, environ: dict[str, str]
) -> None:
    (home / "AGENTS.md").write_text("Answer in one sentence.\n" * 100)
    load = Call("load_skill", {"name": "code-review"})
    script = [Reply(calls=[load]), Reply(text="done"), Reply(text="well")]
    plain = {**environ, "NO_COLOR": "1"}
    async with open_terminal(way, home, plain, script, "--ascii", size=size) as repl:
        (repl.place.folder / "AGENTS.md").write_text("Indent with tabs.\n" * 300)
        repl.tty.type("/context\r")
        await repl.tty.wait_for("No request was sent")
        await repl.send("review it")
        await repl.tty.wait_for("* done", " out")
        repl.tty.type("/context\r")
        await repl.tty.wait_for("the reply")
        rows = list(repl.tty.screen.rows)
    found = table(rows, TITLES)
    assert list(found) == TITLES
    assert max(map(len, (row.rstrip() for row in rows))) <= size[0]
    total = sum(tokens(cells[0]) for cells in found.values())
    assert total == pytest.approx(200_000, rel=0.01)
    percents = {title: cells[1] for title, cells in found.items()}
    assert percents["free"].rstrip("%") > "50"
    assert set(found["free"][2]) == {"#"}
    assert tokens(found["loaded skills"][0]) > tokens(found["list of skills"][0]) > 0


@pytest.mark.slow
async def test_the_rows_are_chinese_in_a_chinese_session(
    home: Path, environ: dict[str, str]
) -> None:
    chinese = {**environ, "LANG": "zh_CN.UTF-8"}
    async with open_terminal("process", home, chinese, [Reply(text="好")], size=(60, 30)) as repl:
        await repl.send("问好")
        await repl.tty.wait_for("● 好", "输出")
        repl.tty.type("/上下文\r")
        await repl.tty.wait_for("为回复预留")
        rows = [row.rstrip() for row in repl.tty.screen.rows]
    shown = table(rows, ["规则和角色", "技能目录", "工具", "对话", "空闲", "为回复预留"])
    assert list(shown) == ["规则和角色", "技能目录", "工具", "对话", "空闲", "为回复预留"]
    assert "█" in shown["空闲"][2]
