"""The `tool` decorator: from an async function to a tool that a model can call.

The signature is the only description: names, types, defaults and the texts in `Annotated` become
the JSON Schema and the argument checks. The type of an argument carries its guard: paths arrive as
`WorkspacePath` and addresses as `PublicUrl`, so no tool can skip the checks.
"""

import asyncio
import difflib
import inspect
import typing
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from copy import copy
from typing import Any, Self
from weakref import WeakValueDictionary

import msgspec

from internal.agent.domain.errors import ToolError
from internal.agent.domain.permissions.targets import PathTarget, Risk, Target, UrlTarget
from internal.agent.domain.text import truncate
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.documents import DocumentReader
from internal.agent.ports.sandbox import Sandbox
from internal.agent.ports.tools import CallContext, ToolOutcome
from internal.i18n.language import Language
from internal.normal_forms.json_schema import type_schema
from internal.normal_forms.names import fold_name
from internal.open_files.paths import destination
from internal.tools.commands.background import BackgroundCommandPool
from internal.tools.http_client import Fetcher
from internal.tools.http_urls import PublicUrl
from internal.tools.web_search.search import WebSearch
from internal.tools.workspace import Workspace, WorkspacePath

MAX_SENT_CHARS = 200
"""Characters of a value in the error about it."""
MAX_RESULT_CHARS = 30_000
"""The longest tool result that a model receives."""


class OutputBuffer:
    """Collects text and keeps its first and last characters, at most `limit`."""

    def __init__(self, limit: int = MAX_RESULT_CHARS) -> None:
        self._half = limit // 2
        self._total = 0
        self.head = self.tail = ""

    def add(self, text: str) -> None:
        """Add text."""
        self._total += len(text)
        remaining = self._half - len(self.head)
        self.head += text[:remaining]
        self.tail = (self.tail + text[remaining:])[-self._half :]

    def copy(self) -> Self:
        """Return a buffer with the same text, to which more can be added."""
        return copy(self)

    def text(self) -> str:
        """Return the text, with a line in place of the omitted middle."""
        return self.join(self.head, self.tail)

    def join(self, head: str, tail: str) -> str:
        """Return the text with other forms of its head and its tail."""
        left_out = self._total - len(self.head) - len(self.tail)
        if not left_out:
            return head + tail
        return f"{head}\n… {left_out:,} characters left out …\n{tail}"


class WebClients(msgspec.Struct, frozen=True):
    """Clients that fetch and search web pages; `search` is None if no provider is configured."""

    fetcher: Fetcher
    search: WebSearch | None = None


class FileLocks:
    """A lock for each file that is being changed: the same one for all paths that lead to it."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def hold(
        self, workspace: Workspace, path: WorkspacePath
    ) -> AsyncGenerator[WorkspacePath]:
        """Keep other calls of this process from changing a file while a block runs.

        Yields the path under which it exists, see `Workspace.find`.
        """
        found, real = await asyncio.to_thread(_locate, workspace, path)
        # also for new files whose names look the same
        lock = self._locks.setdefault(fold_name(real), asyncio.Lock())
        async with lock:
            yield found


def _locate(workspace: Workspace, path: WorkspacePath) -> tuple[WorkspacePath, str]:
    """Return the path of an existing file, and where it leads."""
    found = workspace.find(path)
    return found, destination("/".join((workspace.root_of(found), *found.parts)))


class ToolContext(msgspec.Struct, frozen=True):
    """The context of a call. Hold the lock of a file of the workspace while it is changed."""

    call: CallContext
    workspace: Workspace
    sandbox: Sandbox
    documents: DocumentReader
    web: WebClients
    background: BackgroundCommandPool
    locks: FileLocks
    ripgrep: str | None


Body = Callable[..., Awaitable[str | ToolOutcome]]
Preview = Callable[..., Awaitable[str]]


class Parameter(msgspec.Struct, frozen=True):
    """One argument: its type, and its default if it has one."""

    hint: Any
    default: Any

    @property
    def required(self) -> bool:
        """True if a call must contain it."""
        return self.default is inspect.Parameter.empty

    def schema(self) -> dict[str, Any]:
        """Return its JSON Schema."""
        schema = type_schema(self.hint, schema_hook=_guarded_schema)
        texts = [text for text in typing.get_args(self.hint)[1:] if isinstance(text, str)]
        if texts:
            schema["description"] = texts[0]
        if not self.required:
            plain = isinstance(self.default, bool | int | float | str | list | None)
            schema["default"] = self.default if plain else str(self.default)
        return schema


class Tool(msgspec.Struct, frozen=True):
    """A function that a model can call."""

    spec: ToolSpec
    parameters: dict[str, Parameter]
    body: Body
    preview_body: Preview | None = None

    async def preview(self, context: ToolContext, arguments: dict[str, Any]) -> str:
        """Return the changes that a call would make; "" if the tool has no preview.

        Raises:
            ToolError: the call would fail, or change nothing.
        """
        given = self.parse_arguments(context.workspace, arguments)
        return "" if self.preview_body is None else await self.preview_body(context, **given)

    async def run(self, context: ToolContext, arguments: dict[str, Any]) -> ToolOutcome:
        """Check the arguments and run the function.

        Raises:
            ToolError: an argument is missing, unknown or not valid, or the tool failed.
        """
        given = self.parse_arguments(context.workspace, arguments)
        outcome = await self.body(context, **given)
        return ToolOutcome(outcome) if isinstance(outcome, str) else outcome

    def parse_arguments(self, workspace: Workspace, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments in the types of the function.

        Raises:
            ToolError: an argument is missing, unknown or not valid; the message names it.
        """
        for name in arguments:
            if name not in self.parameters:
                raise ToolError(f"{self.spec.name} has no argument {self._suggest_argument(name)}")
        for name, parameter in self.parameters.items():
            if parameter.required and name not in arguments:
                raise ToolError(f"{self.spec.name} needs the argument {name!r}")
        return {
            name: _convert(workspace, name, self.parameters[name], value)
            for name, value in arguments.items()
        }

    def _suggest_argument(self, name: str) -> str:
        near = difflib.get_close_matches(name[:100], self.parameters, n=1)
        known = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(self.parameters)}"
        return f"{name[:100]!r}: {known}"


def _convert(workspace: Workspace, name: str, parameter: Parameter, value: object) -> object:
    """Return the value in its type. Text that holds a number or boolean is converted."""

    def guard(kind: type, given: object) -> object:
        if not isinstance(given, str):
            raise TypeError(f"Expected `str`, got `{type(given).__name__}`")
        return workspace.parse(given) if kind is WorkspacePath else PublicUrl.parse(given)

    try:
        return msgspec.convert(value, parameter.hint, strict=False, dec_hook=guard)
    except msgspec.ValidationError as error:
        sent = truncate(msgspec.json.encode(value).decode(), MAX_SENT_CHARS)
        raise ToolError(f"argument {name!r}: {error}; you sent {sent}") from error


_TARGET_OF_GUARD: dict[type, type[PathTarget | UrlTarget]] = {
    WorkspacePath: PathTarget,
    PublicUrl: UrlTarget,
}


def _mentions(hint: Any, wanted: type) -> bool:
    return hint is wanted or any(_mentions(each, wanted) for each in typing.get_args(hint))


def _guarded_schema(kind: type) -> dict[str, Any]:
    if kind in {WorkspacePath, PublicUrl}:
        return {"type": "string"}
    raise TypeError(f"no guard is known for {kind}")


def tool(
    *,
    risk: Risk,
    title: dict[Language, str],
    targets: tuple[Target, ...] = (),
    idempotent: bool = False,
    timeout_seconds: float | None = None,
    sandboxed: bool = False,
    preview: Preview | None = None,
) -> Callable[[Body], Tool]:
    """Return a decorator for async functions `(context, **arguments)`.

    The docstring of the function is the description that the model reads.

    Args:
        risk: the kind of effect; the permission mode decides by it.
        title: the name of the tool for people, by language.
        targets: the arguments that permission rules apply to. Every `WorkspacePath` and `PublicUrl`
            argument must be one.
        idempotent: the call may be repeated when its outcome is unknown.
        timeout_seconds: the time limit of a call; None for the configured value.
        sandboxed: the tool changes and runs nothing except by commands in the sandbox.
        preview: takes the same arguments and returns the changes that the function would make.

    Raises:
        TypeError: a target is not an argument, or a path or URL argument is not a target.
    """

    def make(body: Body) -> Tool:
        name = getattr(body, "__name__", "")
        hints = typing.get_type_hints(body, include_extras=True)
        described = list(inspect.signature(body).parameters.values())[1:]
        parameters = {each.name: Parameter(hints[each.name], each.default) for each in described}
        _check_targets(name, parameters, targets)
        schema = {
            "type": "object",
            "properties": {each: parameters[each].schema() for each in parameters},
            "required": [each for each in parameters if parameters[each].required],
            "additionalProperties": False,
        }
        spec = ToolSpec(
            name=name,
            description=inspect.getdoc(body) or "",
            parameters=schema,
            risk=risk,
            idempotent=idempotent,
            timeout_seconds=timeout_seconds,
            sandboxed=sandboxed,
            targets=targets,
            title=title,
        )
        return Tool(spec, parameters, body, preview)

    return make


def _check_targets(
    tool: str, parameters: dict[str, Parameter], targets: tuple[Target, ...]
) -> None:
    """Check that no path or URL argument escapes the permission rules."""
    unknown = {each.argument for each in targets} - parameters.keys()
    if unknown:
        raise TypeError(f"{tool} has no argument {sorted(unknown)} that its targets name")
    for name, parameter in parameters.items():
        for guard, kind in _TARGET_OF_GUARD.items():
            declared = any(isinstance(t, kind) and t.argument == name for t in targets)
            if not declared and _mentions(parameter.hint, guard):
                raise TypeError(f"the argument {name} of {tool} must be a {kind.__name__}")
