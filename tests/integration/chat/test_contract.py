"""Contract of every chat channel: each test runs on all of them."""

import json
import sys
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import pytest

from internal.agent.domain.principals import LOCAL_OWNER
from internal.channels.registry import CHANNELS
from internal.settings.chat import ChatAccess, ChatChannelSettings
from tests.support.agent_app import open_agent, plan
from tests.support.anthropic_server import Call, Reply
from tests.support.chat_services import (
    ChatService,
    eventually,
    open_channel,
    open_service,
    until_given_up,
    until_idle,
)
from tests.support.chat_settings import with_values
from tests.support.mcp_agent import define, review
from tests.support.mcp_servers import hostile_entry
from tests.support.skills import write_skill

QUIET = ChatChannelSettings(react_emoji="off", progress="off", access=ChatAccess(operate=("*",)))
TOUCH = Call("shell", {"command": "touch ran"})
ASKS = [Reply(calls=[plan("do it")]), Reply(calls=[TOUCH]), Reply("done"), Reply("again")]


@pytest.fixture(params=["echo", *(spec.name for spec in CHANNELS)])
async def service(request: pytest.FixtureRequest) -> AsyncGenerator[ChatService]:
    async with open_service(request.param) as opened:
        yield opened


async def test_a_message_becomes_one_reply(service: ChatService, tmp_path: Path) -> None:
    async with open_agent(tmp_path, [Reply("42")]) as app, open_channel(service, app, QUIET):
        asked = await service.say("what is 6*7?")
        await service.until(lambda: bool(service.replies()))
        await until_idle(service, app)
        assert service.replies() == [("42", asked)]


async def test_a_duplicate_is_answered_once(service: ChatService, tmp_path: Path) -> None:
    script = [Reply("once"), Reply("twice")]
    async with open_agent(tmp_path, script) as app, open_channel(service, app, QUIET):
        asked = await service.say("hello")
        await service.redeliver(asked)
        await service.until(lambda: bool(service.replies()))
        await service.redeliver(asked)
        await until_idle(service, app)
        assert service.replies() == [("once", asked)]


async def test_a_chat_keeps_its_order_and_does_not_block_another(
    service: ChatService, tmp_path: Path
) -> None:
    settings = with_values(QUIET, busy_mode="queue")
    script = [Reply("first", hold="go"), Reply("other"), Reply("second")]
    async with open_agent(tmp_path, script) as app, open_channel(service, app, settings):
        first = await service.say("one")
        await app.model.until_open(1)
        other = await service.say("elsewhere", chat=1)
        await service.until(lambda: bool(service.replies(1)))
        second = await service.say("two")
        assert service.replies() == []
        app.model.release("go")
        await service.until(lambda: len(service.replies()) == 2)
        assert service.replies(1) == [("other", other)]
        assert service.replies() == [("first", first), ("second", second)]


async def test_commands_are_answered_without_a_run(service: ChatService, tmp_path: Path) -> None:
    async with open_agent(tmp_path, []) as app, open_channel(service, app, QUIET):
        for text, part in (("/status", "running"), ("/taskfoo", "/help"), ("/usage", "no usage")):
            asked = await service.say(text)
            await service.until(partial(has_reply, service, asked))
            assert part in service.replies()[-1][0].lower()
        assert app.model.requests == []


async def test_the_instructions_of_a_chat_reach_the_model_in_that_chat_only(
    service: ChatService, tmp_path: Path
) -> None:
    (tmp_path / "AGENTS.md").write_text("Call me Ada.")
    script = [Reply("here"), Reply("elsewhere"), Reply("later")]
    async with open_agent(tmp_path, script) as app, open_channel(service, app, QUIET):
        asked = await service.say("/instructions Answer in French.")
        await service.until(partial(has_reply, service, asked))
        assert "Answer in French." in service.replies()[-1][0]
        assert "the owner's AGENTS.md: 12 bytes" in service.replies()[-1][0].replace("`", "")
        for number, (text, chat) in enumerate([("one", 0), ("two", 1)], start=1):
            await service.say(text, chat=chat)
            await app.model.until_asked(number)
            await until_idle(service, app)
        asked = await service.say("/\u8bf4\u660e \u5173\u95ed")
        await service.until(partial(has_reply, service, asked))
        await service.say("three")
        await service.until(lambda: service.replies()[-1][0] == "later")
        sent = [str(request["messages"]) for request in app.model.requests]
    title = "the operators of this chat"
    assert [title in each and "Answer in French." in each for each in sent] == [True, False, False]
    assert sent[0].index("Call me Ada.") < sent[0].index("Answer in French.")
    assert all("Call me Ada." in each for each in sent)


async def test_the_skills_are_listed_with_what_withholds_them(
    service: ChatService, tmp_path: Path
) -> None:
    async with open_agent(tmp_path, []) as app, open_channel(service, app, QUIET):
        reviews = app.services.gateway.skills
        for text, *parts in (
            ("/skills", "`code-review` (in use)"),
            ("/skills", "`bird-song` (not reviewed) Writes down", "`larkspur skills review NAME`"),
            ("/\u6280\u80fd", "\u672a\u5ba1\u9605", "`larkspur skills review "),
            ("/skill", "/skills"),
            ("/skills", "`bird-song` (in use) Writes down"),
        ):
            asked = await service.say(text)
            await service.until(partial(has_reply, service, asked))
            reply = service.replies()[-1][0]
            assert all(part in reply for part in parts)
            if "bird-song" not in reply and text == "/skills":
                write_skill(tmp_path)
            if text == "/skill":
                listed = await reviews.list_all(LOCAL_OWNER)
                (skill,) = [each for each in listed if each.origin == "own"]
                await reviews.decide(skill.name, skill.sha256, LOCAL_OWNER, "web", accept=True)
        assert "larkspur skills review" not in service.replies()[-1][0]
        assert app.model.requests == []


async def test_the_mcp_servers_are_listed_with_what_withholds_them(
    service: ChatService, tmp_path: Path
) -> None:
    async with open_agent(tmp_path, []) as app, open_channel(service, app, QUIET):
        for text, part in (
            ("/mcp", "There are no MCP servers."),
            ("/mcp", "- `tested` (not reviewed), tools: 0"),
            ("/mcp", "- `tested` (in use), tools: 5"),
        ):
            asked = await service.say(text)
            await service.until(partial(has_reply, service, asked))
            reply = service.replies()[-1][0]
            assert part in reply
            assert ("`larkspur mcp review NAME`" in reply) == ("not reviewed" in part)
            if "no MCP servers" in part:
                define(tmp_path, "tested", hostile_entry("plain"))
            elif "not reviewed" in part:
                await review(app, "tested")
        assert app.model.requests == []


@pytest.mark.needs("namespaces")
@pytest.mark.first_rows(1)
async def test_an_operator_narrows_what_commands_of_a_chat_reach(
    service: ChatService, tmp_path: Path
) -> None:
    environ = {"LARKSPUR_SANDBOX__PROVIDER": "auto", "LARKSPUR_SANDBOX__NETWORK": '["a.example"]'}
    script = [Reply("hello"), Reply("hello again")]
    async with open_agent(tmp_path, script, environ) as app, open_channel(service, app, QUIET):
        for text, part in (
            ("/network", "some hosts only (a.example)"),
            ("/network open", "Only the owner"),
            ("/network a b http://c", "`/network` with off, registries, open, hosts"),
            ("/network off", "without network"),
            ("/status", "without network"),
            ("hello", "hello"),
            ("/network default", "some hosts only (a.example)"),
            ("hello", "hello again"),
        ):
            asked = await service.say(text)
            await service.until(partial(has_reply, service, asked))
            assert part in service.replies()[-1][0]
        await until_idle(service, app)
        first, second = (str(request["system"]) for request in app.model.requests)
        assert "a.example" not in first
        assert "a.example" in second


def has_reply(service: ChatService, message_id: str) -> bool:
    return any(reply_to == message_id for _, reply_to in service.replies())


async def test_a_message_during_a_run_steers_it(service: ChatService, tmp_path: Path) -> None:
    script = [Reply(calls=[plan("count")], hold="go"), Reply("counted in French")]
    async with open_agent(tmp_path, script) as app, open_channel(service, app, QUIET):
        asked = await service.say("count")
        await app.model.until_open(1)
        more = await service.say("in French")
        await service.until(lambda: service.reactions(more) == ["received"])
        app.model.release("go")
        await service.until(lambda: bool(service.replies()))
        await until_idle(service, app)
        assert service.replies() == [("counted in French", asked)]
        assert "in French" in str(app.model.requests[-1])


@pytest.mark.parametrize("way", ["text", "quote", "button"])
async def test_a_question_is_answered(service: ChatService, tmp_path: Path, way: str) -> None:
    async with open_agent(tmp_path, ASKS) as app, open_channel(service, app, QUIET):
        asked = await service.say("touch it")
        await service.until(lambda: bool(service.questions()))
        await until_idle(service, app)
        [question] = service.questions()
        assert not service.is_settled(question)
        match way:
            case "button":
                assert await service.approve(question) == "Allowed once"
            case _:
                await service.say("OK", quoted=question if way == "quote" else "")
        await service.until(lambda: bool(service.replies()))
        await service.until(lambda: service.is_settled(question))
        assert service.replies() == [("done\n\n---\nChanged files: ran", asked)]


async def test_a_late_button_names_the_answer(service: ChatService, tmp_path: Path) -> None:
    async with open_agent(tmp_path, ASKS) as app, open_channel(service, app, QUIET):
        await service.say("touch it")
        await service.until(lambda: bool(service.questions()))
        await until_idle(service, app)
        [question] = service.questions()
        await service.approve(question)
        await service.until(lambda: bool(service.replies()))
        await service.say("no", quoted=question)
        await service.until(lambda: len(service.replies()) == 2)
        assert service.replies()[1][0].startswith("Already answered by you")


@pytest.mark.first_rows(1)
async def test_a_failed_send_is_repeated(service: ChatService, tmp_path: Path) -> None:
    async with open_agent(tmp_path, [Reply("at last")]) as app, open_channel(service, app, QUIET):
        service.fail_sends(2)
        asked = await service.say("hello")
        await service.until(lambda: bool(service.replies()))
        await until_idle(service, app)
        assert service.replies() == [("at last", asked)]


async def test_a_rejected_reply_becomes_a_dead_letter(service: ChatService, tmp_path: Path) -> None:
    script = [Reply("never"), Reply("next")]
    async with open_agent(tmp_path, script) as app, open_channel(service, app, QUIET) as channel:
        service.reject_sends()
        await service.say("hello")
        await until_given_up(channel)
        asked = await service.say("again", chat=1)
        await service.until(lambda: bool(service.replies(1)))
        assert service.replies() + service.replies(1) == [("next", asked)]


@pytest.mark.first_rows(1)
async def test_two_processes_display_a_run_once(service: ChatService, tmp_path: Path) -> None:
    settings = with_values(QUIET, progress="card", react_emoji="Typing")
    script = [Reply(calls=[plan("look")]), Reply("seen", hold="go")]
    async with (
        open_agent(tmp_path, script) as app,
        open_channel(service, app, settings),
        open_channel(service, app, settings),
    ):
        asked = await service.say("look")
        await service.until(lambda: service.displays() == ["Working"])
        await service.until(lambda: service.reactions(asked) == ["working"])
        app.model.release("go")
        await service.until(lambda: service.replies() == [("seen", asked)])
        await service.until(lambda: service.reactions(asked) == [])
        assert service.displays() == []


async def test_a_restart_between_message_and_reply_loses_nothing(
    service: ChatService, tmp_path: Path
) -> None:
    async with open_agent(tmp_path, [Reply("kept", hold="go")]) as app:
        async with open_channel(service, app, QUIET):
            asked = await service.say("hello")
            await app.model.until_open(1)
        app.model.release("go")
        async with open_channel(service, app, QUIET):
            await service.until(lambda: bool(service.replies()))
            await until_idle(service, app)
        assert service.replies() == [("kept", asked)]


async def test_a_display_is_continued_after_a_restart(service: ChatService, tmp_path: Path) -> None:
    settings = with_values(QUIET, progress="card")
    script = [Reply(calls=[plan("look")]), Reply("seen", hold="go")]
    async with open_agent(tmp_path, script) as app:
        async with open_channel(service, app, settings):
            asked = await service.say("look")
            await service.until(lambda: service.displays() == ["Working"])
        async with open_channel(service, app, settings):
            app.model.release("go")
            await service.until(lambda: service.replies() == [("seen", asked)])
            assert service.displays() == []


async def test_the_health_follows_the_connection(service: ChatService, tmp_path: Path) -> None:
    async with open_agent(tmp_path, []) as app:
        async with open_channel(service, app, QUIET) as channel:
            await eventually(lambda: channel.link.status == "connected")
            assert channel.name == service.name
        assert channel.link.status == "stopped"


async def test_a_message_that_a_hook_refuses_gets_the_reason(
    service: ChatService, tmp_path: Path
) -> None:
    code = "import json, sys; sys.exit(2 if 'secret' in json.load(sys.stdin)['prompt'] else 0)"
    hook = {"event": "message_received", "name": "guard", "command": [sys.executable, "-c", code]}
    environ = {"LARKSPUR_HOOKS": json.dumps([hook])}
    async with (
        open_agent(tmp_path, [Reply("hi")], environ) as app,
        open_channel(service, app, QUIET),
    ):
        refused = await service.say("a secret")
        await service.until(lambda: len(service.replies()) == 1)
        asked = await service.say("hello")
        await service.until(lambda: len(service.replies()) == 2)
        await until_idle(service, app)
        reason = "Not accepted: refused by hook guard."
        assert service.replies() == [(reason, refused), ("hi", asked)]
