"""`docs/compatibility.md` and its Chinese twin, written from the results."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from tests import ROOT
from tests.compatibility.declarations import DOORS, LANGUAGES
from tests.compatibility.results import Row

Rows = dict[str, dict[str, Row]]


class Language(NamedTuple):
    """A language of the page: its file, its words and its frame."""

    file: str
    verdicts: Mapping[str, str]
    doors: Mapping[str, str]
    text: str
    dash: str = "–"


_ENGLISH = """# Compatibility

[中文](compatibility.zh.md)

Programs of others that were installed from the registries of packages and used as their users would use them, against a real
gateway with a scripted model. `make compatibility` installs and runs them again and rewrites this page; `make compatibility
ONLY="openai"` runs the rows whose names have that part. It needs the registries and no other address, and keeps what it installs in
`~/.cache/larkspur-compatibility`. The programs are in `tests/compatibility`; a row is a file there.

- **works**: everything that the client offers and that is tried works.
- **works with a note**: the main use works; the note says what does not, or what it takes.
- **does not work**: the main use does not; the note is the reason.
- **not tried**: the reason is in the note.

## Clients

What is tried at `/v1`: a plain and a streamed answer, whose text begins and ends with blanks; a history of three turns that the client
carries, of which the last reads a file of the first; `tools` sent along; a picture; a system prompt; a wrong key; the list of models; and a task
that fails, which must be one run however often the client repeats its request. At MCP: the list of tools, a task and its result, progress, a mistake, a
wrong key. At streams: named and unnamed events, and a stream that is resumed. At webhooks: a secret that begins with
`whsec_`, a plain one, and a changed body.

{client_count}

{clients}

## MCP servers

Each server was added with the first command of its README (`larkspur mcp add NAME -- COMMAND`) by a person who has `uv` in
`~/.local/bin` and Node.js in `/usr/bin`, where commands are isolated. What Larkspur then said was followed, at most three times: these are the hints. A server
that starts is reviewed, and its tool is called in a run. Memory is the proportional share of all its processes after that call; tokens
are an estimate of what its tools take in each request.

{server_count}

{servers}
"""

_CHINESE = """# 兼容性

[English](compatibility.md)

以下是从各软件包仓库安装、并按其使用者的方式使用的第三方程序，对面是真实的网关和按脚本回答的模型。`make compatibility` 重新安装并运行它们，
再改写本页；`make compatibility ONLY="openai"` 只运行名称含有该部分的行。它只需要各软件包仓库，安装的内容保存在
`~/.cache/larkspur-compatibility`。程序在 `tests/compatibility` 中，每一行对应其中一个文件。

- **可用**：客户端提供且测试过的功能都可用。
- **可用，有说明**：主要用途可用；说明写出哪些不可用，或需要做什么。
- **不可用**：主要用途不可用；说明写出原因。
- **未测试**：说明写出原因。

## 客户端

在 `/v1` 测试：普通回答和流式回答（文本首尾带空白）；由客户端携带的三轮历史，最后一轮读取第一轮写的文件；随消息发送的 `tools`；图片；系统提示词；错误的密钥；
模型列表；以及一个失败的任务，无论客户端重复请求多少次，都只能有一次运行。在 MCP 测试：工具列表、一个任务及其结果、进度、一个错误、错误的密钥。在事件流测试：有名称和无名称的
事件，以及续传。在 webhook 测试：以 `whsec_` 开头的密钥、普通密钥和被改动的正文。说明保留程序的原文。

{client_count}

{clients}

## MCP 服务器

每个服务器都用其 README 的第一条命令添加（`larkspur mcp add NAME -- COMMAND`）。使用者的 `uv` 在 `~/.local/bin`，Node.js 在 `/usr/bin`，
命令被隔离。之后按 Larkspur 的提示操作，最多三次：这就是“提示”一栏。能启动的服务器经过审核，并在一次运行中调用其工具。内存是该调用之后其所有进程按比例分摊的内存；token 是其工具在每个请求中
所占的估计值。

{server_count}

{servers}
"""

LANGUAGES_OF_PAGE = (
    Language(
        "compatibility.md",
        {
            "works": "works",
            "works with a note": "works with a note",
            "does not work": "does not work",
            "not tried": "not tried",
        },
        DOORS,
        _ENGLISH,
    ),
    Language(
        "compatibility.zh.md",
        {
            "works": "可用",
            "works with a note": "可用，有说明",
            "does not work": "不可用",
            "not tried": "未测试",
        },
        {**DOORS, "webhook": "webhook"},
        _CHINESE,
    ),
)
_HEADS = {
    "compatibility.md": (
        ("client", "language", "door", "version", "verdict", "note", "date"),
        ("server", "first command", "verdict", "hints", "memory (MB)", "tools", "tokens", "note"),
    ),
    "compatibility.zh.md": (
        ("客户端", "语言", "入口", "版本", "结论", "说明", "日期"),
        ("服务器", "第一条命令", "结论", "提示", "内存（MB）", "工具", "token", "说明"),
    ),
}


def versions(packages: Iterable[str]) -> str:
    """Return the packages of a row with their versions, without the words of their registry."""
    return ", ".join(f"`{each.removeprefix('npm:').removeprefix('go:')}`" for each in packages)


def cell(text: object) -> str:
    return str(text).replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(map(cell, line)) + " |" for line in lines)


def _notes(row: Row, language: Language) -> str:
    said = [*row["notes"], *([row["remark"]] if row.get("remark") else [])]
    return "; ".join(said) or language.dash


def _client(row: Row, language: Language) -> tuple[object, ...]:
    return (
        row["client"],
        LANGUAGES[row["language"]] if row["registry"] != "npm" else "Node.js",
        language.doors[row["door"]],
        versions(row["packages"]),
        language.verdicts[row["verdict"]],
        _notes(row, language),
        row.get("date", language.dash),
    )


def _server(row: Row, language: Language) -> tuple[object, ...]:
    hints = "<br>".join(f"`{each}`" for each in row.get("hints", [])) or language.dash
    return (
        f"{row['name']} {row.get('version', '')}".strip(),
        f"`{row['command'].replace('{home}', '~')}`",
        language.verdicts[row["verdict"]],
        hints,
        row.get("memory_mb") or language.dash,
        row.get("tools") or language.dash,
        row.get("tokens") or language.dash,
        _notes(row, language),
    )


def _count(rows: Iterable[Row], language: Language) -> str:
    found = [row["verdict"] for row in rows]
    counts = [(found.count(verdict), word) for verdict, word in language.verdicts.items()]
    return " · ".join(f"{word}: {number}" for number, word in counts if number)


def page(rows: Rows, language: Language) -> str:
    """Return the page in a language."""
    clients, servers = _HEADS[language.file]
    order: Callable[[Row], tuple[int, str]] = lambda row: (  # noqa: E731 - a key of sorting
        list(DOORS).index(row["door"]),
        row["client"].lower(),
    )
    given = sorted(rows["clients"].values(), key=order)
    return language.text.format(
        client_count=_count(given, language),
        clients=_table(clients, (_client(row, language) for row in given)),
        server_count=_count(rows["servers"].values(), language),
        servers=_table(
            servers, (_server(row, language) for _, row in sorted(rows["servers"].items()))
        ),
    )


def write(rows: Rows, folder: Path = ROOT / "docs") -> None:
    """Write the page in each language."""
    for language in LANGUAGES_OF_PAGE:
        (folder / language.file).write_text(page(rows, language), encoding="utf-8")
