"""Routes for skills, MCP servers and their reviews."""

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response

from internal.agent.ports.mcp import LoginAnswer, LoginUrl, McpReviewReport, McpServerSummary
from internal.agent.ports.skills import SkillReviewReport, SkillSummary
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.public_address import page_origin
from internal.channels.web.schemas import EmptyRequest, RequestModel, Sha256

MAX_RULES = 100
MCP_CALLBACK = "/oauth/mcp/callback"
"""Path to which browsers return after a login to an MCP server."""


class SkillsView(msgspec.Struct, frozen=True):
    """All skills. Their problems and warnings are empty for everybody but the owner."""

    skills: list[SkillSummary]


class McpServersView(msgspec.Struct, frozen=True):
    """All MCP servers. Their commands, addresses and problems are empty but for the owner."""

    servers: list[McpServerSummary]


class ReviewRequest(RequestModel, frozen=True):
    """A decision about what has this hash. Without `accept` nothing of it is accepted."""

    sha256: Sha256
    accept: bool


class ReviewSkillRequest(ReviewRequest, frozen=True):
    """A decision about the files of a skill.

    `rules` are the rules of the review that are granted for all tasks outside of chats.
    """

    rules: Annotated[tuple[str, ...], Meta(max_length=MAX_RULES)] = ()


class LoginCallbackQuery(RequestModel, frozen=True, forbid_unknown_fields=False):
    """Parameters that an authorization server adds to the address; it may add more."""

    state: Annotated[str, Meta(min_length=1, max_length=200)]
    code: Annotated[str, Meta(max_length=4_000)] = ""
    iss: Annotated[str, Meta(max_length=2_000)] = ""
    error: Annotated[str, Meta(max_length=200)] = ""

    @property
    def answer(self) -> LoginAnswer:
        """The answer of the browser."""
        error = "" if self.code else self.error or "there is no code"
        return LoginAnswer(self.code, self.state, self.iss or None, error)


async def list_skills(request: ApiRequest[EmptyRequest, EmptyRequest]) -> SkillsView:
    """List the skills, also those that are withheld from the model."""
    return SkillsView(await request.services.gateway.skills.list_all(request.principal))


async def show_review(request: ApiRequest[EmptyRequest, EmptyRequest]) -> SkillReviewReport:
    """Return what a person should know of a skill before accepting it. Requires the owner role."""
    skills = request.services.gateway.skills
    return await skills.review(request.path["name"], request.principal)


async def review_skill(request: ApiRequest[EmptyRequest, ReviewSkillRequest]) -> SkillSummary:
    """Accept or reject the files of a skill. Requires the owner role."""
    body = request.body
    return await request.services.gateway.skills.decide(
        request.path["name"],
        body.sha256,
        request.principal,
        request.channel,
        accept=body.accept,
        rules=body.rules,
    )


async def list_mcp_servers(request: ApiRequest[EmptyRequest, EmptyRequest]) -> McpServersView:
    """List the MCP servers, also those that are withheld. None is started."""
    return McpServersView(await request.services.gateway.mcp.list_all(request.principal))


async def show_mcp_review(request: ApiRequest[EmptyRequest, EmptyRequest]) -> McpReviewReport:
    """Return what is known of an MCP server without starting it. Requires the owner role."""
    return await request.services.gateway.mcp.review(request.path["name"], request.principal)


async def test_mcp_server(request: ApiRequest[EmptyRequest, EmptyRequest]) -> McpReviewReport:
    """Start an MCP server and return what it lists now. Requires the owner role."""
    mcp = request.services.gateway.mcp
    return await mcp.review(request.path["name"], request.principal, start=True)


async def review_mcp_server(request: ApiRequest[EmptyRequest, ReviewRequest]) -> McpServerSummary:
    """Accept or reject the definition and tools of an MCP server. Requires the owner role."""
    body = request.body
    return await request.services.gateway.mcp.decide(
        request.path["name"], body.sha256, request.principal, request.channel, accept=body.accept
    )


async def start_mcp_login(request: ApiRequest[EmptyRequest, EmptyRequest]) -> LoginUrl:
    """Start a login to an MCP server, for the person who asks. Shared ones are for the owner."""
    settings = request.services.settings
    base = settings.public_url or page_origin(request.context, settings)
    return await request.services.gateway.mcp.start_login(
        request.path["name"], request.principal, f"{base.rstrip('/')}{MCP_CALLBACK}"
    )


async def finish_mcp_login(request: ApiRequest[LoginCallbackQuery, EmptyRequest]) -> Response:
    """Take the answer of a browser to the login that it belongs to, once."""
    name = await request.services.gateway.mcp.finish_login(request.query.answer)
    text = f"Signed in to {name}. You can close this window."
    return Response(text, headers={"cache-control": "no-store"}, media_type="text/plain")
