"""The tables of `docs/compatibility.md` and its Chinese twin, written from the results."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from tests import ROOT
from tests.compatibility.declarations import DOORS, LANGUAGES
from tests.compatibility.results import Row
from tests.compatibility.verdicts import RANKS

Rows = dict[str, dict[str, Row]]


class PageWords(NamedTuple):
    """The words of the tables in one language, and the page that has them."""

    file: str
    verdicts: Mapping[str, str]
    clients: tuple[str, ...]
    servers: tuple[str, ...]


PAGES = (
    PageWords(
        "compatibility.md",
        {verdict: verdict for verdict in RANKS},
        ("client", "language", "door", "version", "verdict", "note", "date"),
        ("server", "first command", "verdict", "hints", "memory", "tools", "tokens", "note"),
    ),
    PageWords(
        "compatibility.zh.md",
        dict(zip(RANKS, ("可用", "可用但有说明", "不可用", "未测试"), strict=True)),
        ("客户端", "语言", "入口", "版本", "结论", "说明", "日期"),
        ("服务器", "第一条命令", "结论", "提示", "内存", "工具", "token", "说明"),
    ),
)


def versions(packages: Iterable[str]) -> str:
    """Return the packages of a row with their versions, without the words of their registry."""
    plain = (each.removeprefix("npm:").removeprefix("go:").partition("+")[0] for each in packages)
    return ", ".join(f"`{each}`" for each in plain)


def _cell(text: object) -> str:
    return re.sub(r"([|<])", r"\\\1", str(text)).replace("\n", " ")


def _table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(map(_cell, line)) + " |\n" for line in lines)


def _notes(row: Row) -> str:
    remark = row.get("remark")
    return "; ".join([*row["notes"], *([remark] if remark else [])])


def _client(row: Row, words: PageWords) -> tuple[object, ...]:
    # What drives a command of another registry is Python.
    language = "Node.js" if row["registry"] == "npm" else LANGUAGES[row["language"]]
    return (
        row["client"],
        "Go" if row["registry"] == "Go" else language,
        DOORS[row["door"]],
        versions(row["packages"]),
        words.verdicts[row["verdict"]],
        _notes(row),
        row.get("date", ""),
    )


def _server(row: Row, words: PageWords) -> tuple[object, ...]:
    memory = row.get("memory_mb")
    return (
        f"{row['name']} {row.get('version', '')}".strip(),
        f"`{row['command'].replace('{home}', '~')}`",
        words.verdicts[row["verdict"]],
        "; ".join(f"`{each}`" for each in row.get("hints", [])),
        f"{memory} MB" if memory else "",
        row.get("tools") or "",
        row.get("tokens") or "",
        _notes(row),
    )


def _count(rows: list[Row], words: PageWords) -> str:
    found = [row["verdict"] for row in rows]
    counts = {verdict: found.count(verdict) for verdict in RANKS}
    return ", ".join(f"{words.verdicts[each]}: {n}" for each, n in counts.items() if n)


def _between(text: str, name: str, content: str) -> str:
    """Replace the text between two marks of a page."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    before, _, rest = text.partition(begin)
    return f"{before}{begin}{content}{end}{rest.partition(end)[2]}"


def filled(text: str, rows: Rows, words: PageWords) -> str:
    """Return a page with the tables of the results."""
    doors = list(DOORS)
    clients = sorted(
        rows["clients"].values(),
        key=lambda row: (doors.index(row["door"]), row["client"].lower()),
    )
    servers = [row for _, row in sorted(rows["servers"].items())]
    for name, head, given, cells in (
        ("clients", words.clients, clients, _client),
        ("servers", words.servers, servers, _server),
    ):
        table = _table(head, (cells(row, words) for row in given))
        text = _between(text, name, f"{_count(given, words)}\n\n{table}")
    return text


def write(rows: Rows, folder: Path = ROOT / "docs") -> None:
    """Fill in the tables of the page in each language."""
    for words in PAGES:
        path = folder / words.file
        path.write_text(filled(path.read_text(encoding="utf-8"), rows, words), encoding="utf-8")
