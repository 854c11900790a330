"""Skills over HTTP: the list, the review, the decision, and the skills of a later run."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.errors import Forbidden
from internal.agent.domain.principals import Principal
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.requests import RequestContext
from internal.channels.web.routes import reviews
from internal.channels.web.routes.reviews import ReviewSkillRequest
from internal.channels.web.schemas import EmptyRequest
from tests.support.anthropic_server import Reply
from tests.support.skills import write_skill
from tests.support.working_web_app import WorkingWebApp, open_working_web_app

REVIEW = "/api/skills/bird-song/review"
OPERATOR = Principal("lark:cli_a1:ou_operator", "Odo", frozenset({"talk", "operate"}))


@pytest.fixture
async def app(home: Path) -> AsyncGenerator[WorkingWebApp]:
    write_skill(home)
    script = [Reply("before"), Reply("after")]
    environ = {"LARKSPUR_AGENT__GATES": "off"}
    async with open_working_web_app(home, script, environ) as opened:
        yield opened


async def listed(app: WorkingWebApp) -> list[dict[str, Any]]:
    """The skills that are not shipped."""
    found = (await app.client.get("/api/skills")).json()["skills"]
    assert {"code-review", "report-with-charts"} <= {each["name"] for each in found}
    return [each for each in found if each["origin"] != "shipped"]


async def test_an_accepted_skill_is_offered_to_the_next_run(app: WorkingWebApp) -> None:
    (skill,) = await listed(app)
    report = (await app.client.get(REVIEW)).json()
    assert report["skill"] == skill
    sha256 = skill.pop("sha256")
    assert skill == {
        "name": "bird-song",
        "description": "Writes down the songs of birds.",
        "origin": "own",
        "state": "not reviewed",
        "problem": "",
        "files": [
            {"path": "SKILL.md", "size": 104, "is_script": False},
            {"path": "scripts/sing.sh", "size": 17, "is_script": True},
        ],
        "warnings": [],
        "allowed_tools": ["shell"],
    }
    assert report["scripts"] == ["scripts/sing.sh"]
    assert report["text"].endswith("---\nListen first.\n")
    await app.end_of(await app.task())
    reply = await app.client.post(REVIEW, {"sha256": sha256, "accept": True})
    assert (reply.status, reply.json()["state"]) == (200, "offered")
    assert [each["state"] for each in await listed(app)] == ["offered"]
    await app.end_of(await app.task())
    offered = ["- bird-song:" in str(request["system"]) for request in app.core.model.requests]
    assert offered == [False, True]
    reply = await app.client.post(REVIEW, {"sha256": sha256, "accept": False})
    assert reply.json()["state"] == "not reviewed"
    entries = (await app.client.get("/api/audit")).json()["entries"][:2]
    fields = ("action", "principal", "via", "target", "detail")
    assert [tuple(entry[field] for field in fields) for entry in entries] == [
        ("skill.rejected", "local", "web", "bird-song", sha256),
        ("skill.accepted", "local", "web", "bird-song", sha256),
    ]


async def test_files_that_changed_since_they_were_shown_are_not_accepted(
    app: WorkingWebApp, home: Path
) -> None:
    sha256 = (await app.client.get(REVIEW)).json()["skill"]["sha256"]
    (home / "skills" / "bird-song" / "scripts" / "sing.sh").write_text("echo tirra-lirrA\n")
    reply = await app.client.post(REVIEW, {"sha256": sha256, "accept": True})
    assert reply.status == 409
    assert reply.error["message"] == (
        "The files of the skill bird-song have changed since they were shown. Review them again."
    )
    assert [each["state"] for each in await listed(app)] == ["not reviewed"]
    assert (await app.client.get("/api/audit")).json()["entries"] == []


async def test_offered_rules_are_granted_with_the_decision(app: WorkingWebApp, home: Path) -> None:
    write_skill(home, "owl", tools="Read Bash(git:*) Bash(sudo ls)")
    review = "/api/skills/owl/review"
    report = (await app.client.get(review)).json()
    assert report["requested"] == [
        {"entry": "Read", "rule": "", "refusal": "no rule needed"},
        {"entry": "Bash(git:*)", "rule": "shell(git *)", "refusal": ""},
        {"entry": "Bash(sudo ls)", "rule": "", "refusal": "runs other code"},
    ]
    body = {"sha256": report["skill"]["sha256"], "accept": True}
    for wrong, status, sentence in (
        ({**body, "rules": ["shell(git *)", "shell(ls)"]}, 409, "does not ask for the rule"),
        ({**body, "rules": [""]}, 409, "does not ask for the rule"),
        ({**body, "rules": ["shell"] * 101}, 400, "rules"),
        ({**body, "accept": False, "rules": ["shell(git *)"]}, 409, "only when the files"),
    ):
        reply = await app.client.post(review, wrong)
        assert (reply.status, sentence in reply.error["message"]) == (status, True)
    assert (await app.client.get("/api/rules")).json()["rules"] == []
    assert (await app.client.get("/api/audit")).json()["entries"] == []
    reply = await app.client.post(review, {**body, "rules": ["shell(git *)"]})
    assert (reply.status, reply.json()["state"]) == (200, "offered")
    (rule,) = (await app.client.get("/api/rules")).json()["rules"]
    assert (rule["rule"], rule["place"], rule["via"]) == ("shell(git *)", "principal:local", "web")
    entries = (await app.client.get("/api/audit")).json()["entries"]
    assert [(entry["action"], entry["target"]) for entry in entries] == [
        ("rule.written", "principal:local"),
        ("skill.accepted", "owl"),
    ]


async def test_a_decision_that_is_not_stored_is_in_the_log_and_grants_nothing(
    app: WorkingWebApp, home: Path
) -> None:
    write_skill(home, "owl", tools="Bash(git:*)")
    review = "/api/skills/owl/review"
    sha256 = (await app.client.get(review)).json()["skill"]["sha256"]
    (home / "skills.json").write_text("{")
    body = {"sha256": sha256, "accept": True, "rules": ["shell(git *)"]}
    assert (await app.client.post(review, body)).status == 409
    assert (await app.client.get("/api/rules")).json()["rules"] == []
    (entry,) = (await app.client.get("/api/audit")).json()["entries"]
    assert entry["action"] == "skill.accepted"


async def test_an_unknown_skill_and_a_wrong_hash_are_rejected(app: WorkingWebApp) -> None:
    body = {"sha256": "0" * 64, "accept": True}
    for reply in (
        await app.client.get("/api/skills/bird-sing/review"),
        await app.client.post("/api/skills/bird-sing/review", body),
    ):
        assert reply.status == 404
        assert "bird-sing" in reply.error["message"]
    assert (await app.client.post(REVIEW, {**body, "sha256": "x"})).status == 400
    assert (await app.client.post(REVIEW, {"sha256": "0" * 64})).status == 400


async def test_only_the_owner_reviews_skills_and_reads_problems(
    app: WorkingWebApp, home: Path
) -> None:
    def call(body: Any = None) -> ApiRequest[Any, Any]:
        """Return a request of a person with a credential that this server does not accept yet."""
        context = RequestContext(
            {"method": "GET", "headers": []}, "r", is_public=False, principal=OPERATOR
        )
        path = {"name": "bird-song"}
        return ApiRequest(app.services, context, path, EmptyRequest(), body or EmptyRequest())

    with pytest.raises(Forbidden):
        await reviews.show_review(call())
    with pytest.raises(Forbidden):
        await reviews.review_skill(call(ReviewSkillRequest("0" * 64, accept=True)))
    (home / "skills" / "bird-song" / "SKILL.md").write_text("")
    listing = (await reviews.list_skills(call())).skills
    (shown,) = [each for each in listing if each.origin != "shipped"]
    assert (shown.state, shown.problem) == ("not usable", "")
    (whole,) = await listed(app)
    assert "SKILL.md" in whole["problem"]
    reply = await app.client.get(REVIEW)
    assert reply.status == 409
    assert reply.error["message"] == whole["problem"]
