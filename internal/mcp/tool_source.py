"""The tools of MCP servers as a source of tools, and the one that asks for a review of them."""

from typing import Annotated, Any

import msgspec

from internal.agent.domain.errors import LarkspurError, ToolError
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.react.input_forms import InputForm, InputRequest
from internal.agent.domain.text import escape_hidden, truncate_line
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.mcp import McpReviewReport, McpReviews
from internal.agent.ports.tools import (
    CallContext,
    InputRequired,
    ToolOutcome,
    WithheldTool,
    reported_to_model,
)
from internal.i18n.call_summary import readable_tool
from internal.i18n.language import LANGUAGES
from internal.mcp.default_arguments import without_needless
from internal.mcp.elicitation import read_input_request, requires_input, source_of
from internal.mcp.limits import LoginRequired
from internal.mcp.manifest import PREFIX
from internal.mcp.results import ResultReader
from internal.mcp.servers import McpServers, OfferedTool
from internal.normal_forms.json_schema import type_schema

MAX_PROGRESS_CHARS = 500
_SPARE_SECONDS = 5.0
_LOGIN = "larkspur:login"
"""The state of the question about a login; one of a server is never continued with it."""


class McpTools:
    """The tools that a person has accepted. Implements `ToolSource`.

    Args:
        servers: runs the calls.
        results: reads their results.
    """

    def __init__(self, servers: McpServers, results: ResultReader) -> None:
        self._servers, self._results = servers, results

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the specifications of the accepted tools; no server is started."""
        return tuple(map(_spec, self._servers.offer().tools.values()))

    def withheld(self) -> tuple[WithheldTool, ...]:
        """Return the tools that wait for a review; `mcp__server` stands for all of a server."""
        return self._servers.offer().withheld

    async def run(
        self, context: CallContext, name: str, arguments: dict[str, Any], /
    ) -> ToolOutcome:
        """Run a call; the first one of a server starts it. Cancelling it notifies the server.

        Raises:
            ToolError: the call failed, or the tool is withheld.
            InputRequired: the server asks people for something, or for a login.
        """

        def report(done: float, total: float | None, message: str) -> None:
            amount = f"{done:g} of {total:g}" if total else f"{done:g}"
            text = truncate_line(escape_hidden(message), MAX_PROGRESS_CHARS)
            context.progress(f"{text} ({amount})\n" if text else f"{amount}\n")

        key, reply = f"{context.run_id}:{context.call_id}", context.reply
        if reply is not None and reply.state == _LOGIN:
            reply = None
        try:
            result = await self._servers.call(
                name, arguments, report, principal=context.principal, key=key, reply=reply
            )
        except LoginRequired as error:
            raise await self._login_question(context, name, error) from error
        if requires_input(result):
            server = self._servers.find(name).server.name
            raise InputRequired(read_input_request(server, result))
        return await self._results.read(context, name, result)

    async def preview(
        self, _context: CallContext, _name: str, _arguments: dict[str, Any], /
    ) -> str:
        """Return "": the changes of a call are not known in advance."""
        return ""

    async def _login_question(
        self, context: CallContext, name: str, error: LoginRequired
    ) -> InputRequired | ToolError:
        """Return the question with the address of a login, or an error where it is not asked.

        The address gives the account of whoever opens it to the person who gave the task: others
        must not see it. A shared login is the owner's to give.
        """
        server, redirect = self._servers.find(name).server, self._servers.login_redirect
        refusal = ToolError(f"The MCP server {server.name} cannot be used: {error}.")
        is_theirs = server.login == "personal" or context.principal == LOCAL_OWNER.id
        declined = context.reply is not None and context.reply.has_declined
        if declined or not redirect or not context.is_private or not is_theirs:
            return refusal
        try:
            url = await self._servers.start_login(server, context.principal, redirect)
        except LarkspurError:
            return refusal
        form = InputForm(_LOGIN, f"sign in to {server.name} with your own account", url=url)
        return InputRequired(InputRequest(source_of(server.name), (form,), _LOGIN))


def _spec(offered: OfferedTool) -> ToolSpec:
    server, tool = offered
    label = f"{tool.title} ({server.name})" if tool.title else readable_tool(tool.offered_name)
    return ToolSpec(
        name=tool.offered_name,
        description=tool.description,
        parameters=without_needless(tool.schema),
        risk=server.risk_of(tool.name),
        title=dict.fromkeys(LANGUAGES, label),
        # the limits of the server come first: they say more
        timeout_seconds=server.start_timeout_seconds
        + 2 * server.call_timeout_seconds
        + _SPARE_SECONDS,
    )


class _Review(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=40, description="The server.")]
    sha256: Annotated[
        str, msgspec.Meta(max_length=64, description="The hash that a call without it reports.")
    ] = ""


REVIEW_SERVER_SPEC = ToolSpec(
    name="review_mcp_server",
    description="Ask the owner to review an MCP server whose tools are withheld.",
    parameters=type_schema(_Review)["$defs"]["_Review"],
    risk="read",
    idempotent=True,
    title={"en": "Review an MCP server", "zh": "审阅 MCP 服务器"},
    trusts="name",
)


class ServerReviewTool:
    """Asks the owner about servers whose tools are withheld. Implements `ToolSource`.

    Args:
        servers: lists the servers.
        reviews: provides the review for the owner, and stores the decision.
    """

    def __init__(self, servers: McpServers, reviews: McpReviews) -> None:
        self._servers, self._reviews = servers, reviews

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tool, which names the servers; nothing if no tool is withheld."""
        withheld = self._servers.offer().withheld
        names = sorted({each.name.removeprefix(PREFIX).split("__")[0] for each in withheld})
        if not names:
            return ()
        text = f"{REVIEW_SERVER_SPEC.description} There are: {', '.join(names)}."
        return (msgspec.structs.replace(REVIEW_SERVER_SPEC, description=text),)

    def withheld(self) -> tuple[WithheldTool, ...]:
        """Return (): the source of the tools names them."""
        return ()

    async def run(
        self, _context: CallContext, name: str, arguments: dict[str, Any], /
    ) -> ToolOutcome:
        """Accept the server as agreed by the owner.

        Raises:
            ToolError: the server has changed since, or the decision cannot be stored.
        """
        wanted = _parse(name, arguments)
        with reported_to_model():
            decided = await self._reviews.decide(wanted.name, wanted.sha256, accept=True)
        return ToolOutcome(
            f"The owner accepted {decided.tools} tools of {decided.name}. Tools that this run does"
            " not have are offered from the next run on."
        )

    async def preview(self, _context: CallContext, name: str, arguments: dict[str, Any], /) -> str:
        """Return the review of a server for the owner. Starts nothing.

        Raises:
            ToolError: an argument is wrong, or there is nothing to review.
        """
        wanted = _parse(name, arguments)
        with reported_to_model():
            report = await self._reviews.review(wanted.name, start=False)
        if not report.is_listed:
            raise ToolError(
                f"the tools of {wanted.name} are not known; the owner must start it first:"
                f" larkspur mcp review {wanted.name}"
            )
        if all(tool.state == "offered" for tool in report.tools):
            raise ToolError(f"all tools of {wanted.name} are accepted")
        if wanted.sha256 != report.server.sha256:
            raise ToolError(f"call it with the sha256 {report.server.sha256}")
        return _describe(report)


def _parse(name: str, arguments: dict[str, Any]) -> _Review:
    try:
        return msgspec.convert(arguments, _Review)
    except msgspec.ValidationError as error:
        raise ToolError(f"{name}: {error}") from error


def _describe(report: McpReviewReport) -> str:
    """Return a report as a diff, in which only the changes are added and removed lines."""
    server = report.server
    lines = [
        f"MCP server {server.name}: {server.state}",
        f"If this is cut, read all of it first: larkspur mcp review {server.name}",
        server.target,
        *([f"Network: {', '.join(report.network)}"] if report.network else []),
        *([] if report.is_isolated or report.host else ["Its command runs without isolation."]),
        *(f"Problem: {each}" for each in (*report.problems, *server.warnings)),
        *(
            f"{tool.name} ({tool.risk}, {tool.state}): {truncate_line(tool.description, 200)}"
            for tool in report.tools
            if tool.state != "offered"
        ),
    ]
    return "\n".join([*(f" {line}" for line in lines), *report.changes, ""])
