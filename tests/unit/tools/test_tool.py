"""The tool decorator: schemas from signatures, checked arguments, guards by type."""

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
import pytest

from internal.agent.domain.errors import ToolError
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.domain.permissions.targets import PathTarget, UrlTarget
from internal.agent.domain.react.gates import CONTROL_SPECS, DEFERRED_TOOL_SPECS
from internal.agent.ports.sandbox import Sandbox
from internal.agent.ports.tools import CallContext, ToolOutcome, ToolSource
from internal.documents.reader import ChildDocumentReader
from internal.i18n.language import Language
from internal.observability.clock import SystemClock
from internal.tools.commands.background import BackgroundCommandPool
from internal.tools.http_client import Fetcher
from internal.tools.http_urls import PublicUrl
from internal.tools.instruction_trust import InstructionTrust
from internal.tools.registry import TOOLS, ToolBox
from internal.tools.tool import FileLocks, OutputBuffer, ToolContext, WebClients, tool
from internal.tools.workspace import Workspace, WorkspacePath
from tests.support.tools import native_sandbox, tool_box, unprotected


@pytest.mark.parametrize("length", [0, 1, 9, 10, 11, 25, 1000])
@pytest.mark.parametrize("step", [1, 7, 1000])
def test_omitted_characters_are_counted(length: int, step: int) -> None:
    whole = "".join(chr(0x4E00 + number) for number in range(length))
    clip = OutputBuffer(10)
    for start in range(0, len(whole), step):
        clip.add(whole[start : start + step])
    if length <= 10:
        assert clip.text() == whole
    else:
        middle = f"\n… {length - 10:,} characters left out …\n"
        assert clip.text() == whole[:5] + middle + whole[-5:]


TITLE: dict[Language, str] = {"en": "Sample", "zh": "示例"}
CONTEXT = CallContext(SessionId("s"), RunId("r"), "c", "/files", lambda _: None)


@tool(
    risk="read",
    targets=(PathTarget("path"), PathTarget("more", multiple=True), UrlTarget("url")),
    title=TITLE,
    idempotent=True,
    timeout_seconds=5.0,
)
async def sample(
    context: ToolContext,
    path: Annotated[WorkspacePath, "A path."],
    kind: Annotated[Literal["big", "small"], "Which."] = "small",
    count: Annotated[int, msgspec.Meta(ge=1, le=9), "How many."] = 3,
    ratio: float = 0.5,
    loud: bool = False,
    names: list[str] | None = None,
    more: list[WorkspacePath] | None = None,
    url: PublicUrl | None = None,
) -> ToolOutcome:
    """Do something.

    And more.
    """
    return ToolOutcome(
        f"{path}|{kind}|{count}|{ratio}|{loud}|{names}|{[str(each) for each in more or []]}|{url}"
    )


@tool(risk="read", title=TITLE)
async def plain(context: ToolContext) -> str:
    """Say something."""
    return context.call.call_id


def box(*tools: Any) -> ToolBox:
    return tool_box(Path("/files"), tools=tools or TOOLS)


async def run(**arguments: object) -> str:
    return (await box(sample).run(CONTEXT, "sample", arguments)).text


def test_the_specification_follows_the_signature() -> None:
    spec = sample.spec
    assert (spec.name, spec.description) == ("sample", "Do something.\n\nAnd more.")
    assert (spec.risk, spec.idempotent, spec.timeout_seconds) == ("read", True, 5.0)
    properties = spec.parameters["properties"]
    assert spec.parameters["required"] == ["path"]
    assert spec.parameters["additionalProperties"] is False
    assert properties["path"] == {"type": "string", "description": "A path."}
    assert properties["kind"]["enum"] == ["big", "small"]
    assert properties["count"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 9,
        "description": "How many.",
        "default": 3,
    }
    assert properties["loud"] == {"type": "boolean", "default": False}
    assert properties["names"]["anyOf"][0] == {"type": "array", "items": {"type": "string"}}


async def test_arguments_arrive_in_their_types() -> None:
    assert await run(path="a/b") == "a/b|small|3|0.5|False|None|[]|None"
    text = await run(
        path="/files/x", kind="big", count=9, ratio=1, loud=True, names=["n"], more=["a", "./b"]
    )
    assert text == "x|big|9|1.0|True|['n']|['a', 'b']|None"
    assert (await run(path="a", url="HTTP://Example.COM")).endswith("|http://example.com/")


async def test_numbers_and_booleans_may_be_text() -> None:
    assert (
        await run(path="a", count="4", ratio="2", loud="true") == "a|small|4|2.0|True|None|[]|None"
    )


BAD: dict[str, tuple[dict[str, object], str]] = {
    "missing": ({}, "sample needs the argument 'path'"),
    "unknown": ({"path": "a", "cuont": 1}, "no argument 'cuont': did you mean 'count'"),
    "far": ({"path": "a", "zzzz": 1}, "no argument 'zzzz': it takes path, kind, count"),
    "type": ({"path": "a", "count": "many"}, "argument 'count': Expected `int`, got `str`"),
    "range": ({"path": "a", "count": 10}, "argument 'count': Expected `int` <= 9"),
    "choice": ({"path": "a", "kind": "huge"}, "argument 'kind': Invalid enum value 'huge'"),
    "item": ({"path": "a", "names": [1]}, r"argument 'names': Expected `str`, got `int`"),
    "null": ({"path": None}, "argument 'path': Expected `str`, got `NoneType`"),
    "guard": ({"path": "../x"}, r"contains '\.\.'"),
    "guard in a list": ({"path": "a", "more": ["ok", "/etc/passwd"]}, "outside the workspace"),
    "guard of addresses": ({"path": "a", "url": "file:///etc/passwd"}, "only http:// and"),
    # a decoder that knew the guarded types would build them from objects, unchecked
    "object for a path": ({"path": {"parts": ["..", "x"]}}, "Expected `str`, got `dict`"),
    "objects in a list": ({"path": "a", "more": [{"parts": [".."]}]}, "Expected `str`, got `dict`"),
    "object for an address": (
        {"path": "a", "url": {"scheme": "file", "host": "h", "port": 1, "target": "/"}},
        "Expected `str`, got `dict`",
    ),
}


@pytest.mark.parametrize(("arguments", "says"), BAD.values(), ids=BAD)
async def test_a_bad_argument_is_named(arguments: dict[str, object], says: str) -> None:
    with pytest.raises(ToolError, match=says):
        await run(**arguments)


def test_a_parameter_type_without_a_guard_is_rejected() -> None:
    async def broken(context: ToolContext, sandbox: Sandbox) -> str:
        return ""

    with pytest.raises(TypeError, match="no guard is known"):
        tool(risk="read", title=TITLE)(broken)


def test_a_path_or_url_argument_must_be_a_permission_target() -> None:
    async def copy(context: ToolContext, path: WorkspacePath, more: list[WorkspacePath]) -> str:
        return ""

    async def get(context: ToolContext, url: PublicUrl | None = None) -> str:
        return ""

    with pytest.raises(TypeError, match="argument path of copy must be a PathTarget"):
        tool(risk="write", title=TITLE)(copy)
    with pytest.raises(TypeError, match="argument more of copy must be a PathTarget"):
        tool(risk="write", title=TITLE, targets=(PathTarget("path"),))(copy)
    with pytest.raises(TypeError, match="argument url of get must be a UrlTarget"):
        tool(risk="net", title=TITLE)(get)
    with pytest.raises(TypeError, match=r"copy has no argument \['to'\]"):
        tool(risk="write", title=TITLE, targets=(PathTarget("to"),))(copy)


def test_every_tool_has_a_title_in_both_languages() -> None:
    for spec in (*(each.spec for each in TOOLS), *CONTROL_SPECS, *DEFERRED_TOOL_SPECS):
        assert all(spec.title[language] for language in get_args(Language)), spec.name


async def test_a_tool_may_return_text() -> None:
    assert await box(plain).run(CONTEXT, "plain", {}) == ToolOutcome("c")


async def test_the_error_for_an_unknown_tool_suggests_the_nearest_name() -> None:
    with pytest.raises(ToolError, match="no tool 'readfile': did you mean read_file"):
        await box().run(CONTEXT, "readfile", {})
    with pytest.raises(ToolError, match=r"no tool 'qqqq'$"):
        await box().run(CONTEXT, "qqqq", {})


def test_the_built_in_tools_are_listed_in_order() -> None:
    source: ToolSource = box()
    specs = source.specs()
    assert [(spec.name, spec.risk, spec.idempotent) for spec in specs] == [
        ("read_file", "read", True),
        ("write_file", "write", False),
        ("edit_file", "write", False),
        ("list_dir", "read", True),
        ("search_files", "read", True),
        ("share_file", "read", True),
        ("shell", "exec", False),
        ("shell_output", "read", False),
        ("shell_stop", "read", False),
        ("run_code", "exec", False),
        ("web_fetch", "net", True),
    ]
    for spec in specs:
        assert spec.description
        assert all(each["description"] for each in spec.parameters["properties"].values())
        assert msgspec.json.decode(msgspec.json.encode(spec), type=type(spec)) == spec


def test_path_and_url_arguments_have_guarded_types() -> None:
    """Every argument of a tool that is called like a path or an address is one."""
    for each in TOOLS:
        for name, parameter in each.parameters.items():
            kind = getattr(parameter.hint, "__origin__", parameter.hint)
            if name in {"path", "file", "folder"}:
                assert kind is WorkspacePath
            if name == "url":
                assert kind is PublicUrl


def test_a_tool_context_can_be_built_without_a_tool_box() -> None:
    folder = Path("/files")
    workspace = Workspace(str(folder), unprotected(folder))
    context = ToolContext(
        CONTEXT,
        workspace,
        native_sandbox(folder),
        ChildDocumentReader(native_sandbox(folder)),
        WebClients(Fetcher()),
        BackgroundCommandPool(SystemClock(), InstructionTrust(folder)),
        FileLocks(),
        None,
    )
    assert str(context.workspace.parse("/files")) == "."
