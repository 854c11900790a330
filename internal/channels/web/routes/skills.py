"""Routes for skills and their reviews."""

from typing import Annotated

import msgspec
from msgspec import Meta

from internal.agent.ports.skills import SkillReviewReport, SkillSummary
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.schemas import EmptyRequest, RequestModel, Sha256

MAX_RULES = 100


class SkillsView(msgspec.Struct, frozen=True):
    """All skills. Their problems and warnings are empty for everybody but the owner."""

    skills: list[SkillSummary]


class ReviewSkillRequest(RequestModel, frozen=True):
    """A decision about the files with this hash. Without `accept` no files are accepted.

    `rules` are those of the review that are granted for all tasks outside of chats.
    """

    sha256: Sha256
    accept: bool
    rules: Annotated[tuple[str, ...], Meta(max_length=MAX_RULES)] = ()


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
