"""Requests in the dialect of a server, with notes about the parts that were left out."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from internal.agent.domain.left_out import RequestLoss
from internal.agent.domain.messages import Message, Part, ToolCall, images_in
from internal.agent.domain.permissions.targets import mcp_server
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.llm import ModelRequest, ModelResponse
from internal.llm.tool_schemas import with_common_schemas
from internal.model_providers.dialect import Dialect

_HASH_CHARACTERS = 8


class PreparedRequest(NamedTuple):
    """A request that can be encoded, and the notes about its missing parts.

    `names` are the real names of tools by those that the server is told, where they differ.
    """

    request: ModelRequest
    notes: tuple[RequestLoss, ...] = ()
    names: Mapping[str, str] = {}

    @property
    def tool_names(self) -> list[str]:
        """The real names of the offered tools, in their order."""
        return [self.names.get(tool.name, tool.name) for tool in self.request.tools]

    def restored(self, reply: ModelResponse) -> ModelResponse:
        """Return a reply with the real names of the called tools."""
        if not self.names:
            return reply
        return replace(reply, parts=tuple(_renamed(reply.parts, self.names)))


def prepare_request(
    request: ModelRequest, dialect: Dialect, held: frozenset[str] = frozenset()
) -> PreparedRequest:
    """Return the request without the tools that the server does not take.

    Args:
        request: what the run asks for.
        dialect: what the server takes.
        held: tools that are not offered this time, to find out which one the server refuses.
    """
    may_call = dialect.tool_choice or request.tool_choice == "auto"
    tools = _offered(request.tools if may_call else (), dialect, held)
    notes = []
    if request.tools and not dialect.tools:
        notes.append(RequestLoss("tools", len(request.tools)))
    newest = images_in(request.messages[-1:])
    if newest and not dialect.pictures:
        notes.append(RequestLoss("pictures", len(newest)))
    limit = dialect.max_output_tokens or request.max_output_tokens
    names = {name: own for own, name in _short_names(tools, dialect.max_tool_name)}
    if tools is not request.tools or limit < request.max_output_tokens:
        limit = min(limit, request.max_output_tokens)
        request = replace(request, tools=tools, max_output_tokens=limit)
    if names:
        request = _with_names(request, {own: name for name, own in names.items()})
    return PreparedRequest(request, tuple(notes), names)


def without_oldest_images(request: ModelRequest, excess: int) -> tuple[ModelRequest, int]:
    """Return the request with so many fewer bytes of images, and how many images it lost.

    The oldest images are left out first. Fewer bytes are saved if there are no more images.
    """
    order = [image.sha256 for image in images_in(request.messages)]
    copies = Counter(order)
    # an image that is shown several times is as new as its newest place
    by_age = sorted(copies, key=lambda sha256: len(order) - order[::-1].index(sha256))
    images = dict(request.images)
    count = 0
    for sha256 in by_age:
        if excess <= 0:
            break
        if (data := images.pop(sha256, None)) is not None:
            excess -= len(data) * copies[sha256]
            count += copies[sha256]
    return replace(request, images=images), count


def image_bytes(request: ModelRequest) -> int:
    """Return the bytes of the images in the body of a request."""
    return sum(len(request.images.get(each.sha256, "")) for each in images_in(request.messages))


def _offered(
    tools: tuple[ToolSpec, ...], dialect: Dialect, held: frozenset[str]
) -> tuple[ToolSpec, ...]:
    if not dialect.tools:
        return ()
    left_out = dialect.withheld_tools | held
    if left_out:
        tools = tuple(tool for tool in tools if tool.name not in left_out)
    if dialect.max_tools is not None and len(tools) > dialect.max_tools:
        # the tools of Larkspur first: runs cannot do without some of them
        ranked = sorted(range(len(tools)), key=lambda at: (bool(mcp_server(tools[at].name)), at))
        tools = tuple(tools[at] for at in sorted(ranked[: dialect.max_tools]))
    return with_common_schemas(tools)


def _short_names(tools: Iterable[ToolSpec], max_characters: int) -> Iterator[tuple[str, str]]:
    """Yield the names that are too long, each with a shorter one that no other tool has."""
    for tool in tools:
        if len(tool.name) > max_characters:
            digest = hashlib.blake2s(tool.name.encode(), digest_size=_HASH_CHARACTERS // 2)
            kept = max_characters - _HASH_CHARACTERS - 1
            yield tool.name, f"{tool.name[: max(kept, 0)]}_{digest.hexdigest()}"


def _with_names(request: ModelRequest, names: Mapping[str, str]) -> ModelRequest:
    messages = [
        Message(each.role, tuple(_renamed(each.parts, names)), each.origin)
        if any(call.name in names for call in each.calls)
        else each
        for each in request.messages
    ]
    tools = (replace(tool, name=names.get(tool.name, tool.name)) for tool in request.tools)
    return replace(request, messages=messages, tools=tuple(tools))


def _renamed(parts: Iterable[Part], names: Mapping[str, str]) -> Iterator[Part]:
    for part in parts:
        if isinstance(part, ToolCall) and part.name in names:
            yield replace(part, name=names[part.name])
        else:
            yield part
