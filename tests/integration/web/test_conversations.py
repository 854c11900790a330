"""Conversations of chat programs: OpenAI's client library with the whole history each time."""

import base64
import sqlite3
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from internal.agent.domain.ids import SessionId
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.channels.web.completions.messages import CompletionInput, read_messages
from internal.channels.web.completions.transcripts import transcript_hash
from tests.support.agent_app import plan
from tests.support.anthropic_server import Call, Fault, Reply, Rules, When
from tests.support.chat_services import eventually
from tests.support.web_app import TOKEN
from tests.support.working_web_app import WorkingWebApp, open_working_web_app

if TYPE_CHECKING:
    from openai import AsyncOpenAI

PIXEL = base64.b64encode(
    base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
).decode()
PICTURE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
OPTIONS = {"question": "Which colour?", "options": ["red", "blue"]}
SCRIPT = Rules(
    [
        Reply(
            text="I write it.",
            calls=[Call("write_file", {"path": "output/notes.md", "content": "milk"})],
            when=When(last_user="make notes", results=0),
        ),
        Reply(text="It is written.", when=When(last_user="make notes", results=1)),
        Reply(
            calls=[Call("read_file", {"path": "output/notes.md"})],
            when=When(last_user="what do the notes say", results=0),
        ),
        Reply(text="They say milk.", when=When(last_result="milk")),
        Reply(text="There are none.", when=When(last_user="what do the notes say", results=1)),
        Reply(text="One pixel.", when=When(last_user="picture")),
        Reply(
            calls=[Call("shell", {"command": "touch a"})],
            when=When(last_user="ask first", results=0),
        ),
        Reply(text="Then I leave it.", when=When(last_user="ask first", results=1)),
        Reply(calls=[Call("request_user", OPTIONS)], when=When(last_user="paint it", results=0)),
        Reply(text="Painted.", when=When(last_user="paint it", results=1)),
        Reply(text="It went on.", when=When(last_user="and this")),
        Reply(
            calls=[Call("subagent", {"tasks": [{"instruction": "dig"}, {"instruction": "fill"}]})],
            when=When(last_user="a garden", results=0),
        ),
        Reply(text="It grows.", when=When(last_user="a garden", results=1)),
        Reply(
            calls=[Call("request_user", {"question": "Where?"})],
            when=When(last_user="dig", results=0),
        ),
        Reply(
            calls=[Call("request_user", {"question": "With earth?"})],
            when=When(last_user="fill", results=0),
        ),
        Reply(text="Done.", when=When(last_user="dig", results=1)),
        Reply(text="Done.", when=When(last_user="fill", results=1)),
        Reply(fault=Fault("status", status=400, message="Bad."), when=When(last_user="fail")),
        Reply(text="half done", pieces=2, hold="slow", after_pieces=1, when=When(last_user="slow")),
        Reply(text="They say a lot. " * 20, when=When(last_user="my pages")),
        Reply(calls=[plan("boil", "pour")], when=When(last_user="tea", results=0)),
        Reply(text="The tea is ready.", when=When(last_user="tea", results=2)),
        Reply(calls=[plan("boil", "pour slowly")], when=When(last_user="tea", results=1)),
        Reply(text="Hello.", when=When()),
    ]
)


@dataclass
class Chat:
    """A chat program: it keeps the messages and sends all of them."""

    client: "AsyncOpenAI"
    messages: list[Any] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)

    async def say(self, content: Any, *, stream: bool = False, **options: Any) -> str:
        """Send a message and return the answer, which becomes a part of the history."""
        self.messages.append({"role": "user", "content": content})
        create = self.client.chat.completions.with_raw_response.create
        raw = await create(model="larkspur", messages=self.messages, stream=stream, **options)
        parsed: Any = raw.parse()
        if stream:
            pieces = [each.choices[0].delta.content or "" async for each in parsed]
            answer = "".join(pieces)
        else:
            answer = parsed.choices[0].message.content
            self.tasks.append(parsed.model_extra["larkspur"]["task_id"])
        self.sessions.append(raw.headers["x-larkspur-session"])
        self.messages.append({"role": "assistant", "content": answer})
        return str(answer)


@asynccontextmanager
async def opened(home: Path, **settings: str) -> AsyncGenerator[tuple[WorkingWebApp, Chat]]:
    from openai import AsyncOpenAI  # noqa: PLC0415 - slow to import, and collected in every worker

    environ = {"LARKSPUR_AGENT__GATES": "off", **settings}
    async with open_working_web_app(home, SCRIPT, environ) as app:
        url = f"http://127.0.0.1:{app.client.port}/v1"
        async with AsyncOpenAI(api_key=TOKEN, base_url=url, max_retries=0) as client:
            yield app, Chat(client)


def inputs_of(chat: Chat) -> list[CompletionInput]:
    return msgspec.convert(chat.messages, list[CompletionInput])


async def until_remembered(home: Path, chat: Chat) -> None:
    """Wait until the server has noticed that the client left."""
    transcript = transcript_hash("", read_messages(inputs_of(chat)))
    select = "select count(*) from conversations where transcript = ?"

    def is_remembered() -> bool:
        with closing(sqlite3.connect(home / "larkspur.db")) as database:
            return bool(database.execute(select, [transcript]).fetchone()[0])

    await eventually(is_remembered)


def one(values: Sequence[str]) -> str:
    (value,) = set(values)
    return value


@pytest.mark.parametrize("stream", [False, True])
async def test_a_history_continues_its_session_with_its_files(home: Path, *, stream: bool) -> None:
    async with opened(home) as (app, chat):
        await chat.say("make notes", stream=stream)
        assert await chat.say("what do the notes say?", stream=stream) == "They say milk."
        session = one(chat.sessions)
        reply = await app.client.get(f"/api/tasks?session_id={session}")
        told = [task["task"] for task in reply.json()["tasks"]]
        assert told == ["what do the notes say?", "make notes"]
        assert "The conversation so far" not in str(app.core.model.requests[-1])


async def test_what_clients_change_in_a_history_does_not_matter(home: Path) -> None:
    async with opened(home) as (_, chat):
        instructions = {"role": "system", "content": "It is 10:01."}
        chat.messages.append(instructions)
        await chat.say([{"type": "text", "text": "hi "}, {"type": "text", "text": "there"}])
        instructions["content"] = "It is 10:02."
        chat.messages[1]["content"] = "hi there\r\n"
        chat.messages[2]["content"] = [
            {"type": "thinking", "thinking": "what to say"},
            {"type": "text", "text": "<think>\nwhat to say\n</think>\n\nHello. "},
        ]
        chat.messages += [
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
            {"role": "tool", "tool_call_id": "1", "content": "12 degrees"},
        ]
        await chat.say("more")
        one(chat.sessions)


async def test_what_a_program_adds_to_one_message_does_not_matter(home: Path) -> None:
    async with opened(home) as (_, chat):
        await chat.say("hi")
        await chat.say("<context>Page 1: …</context>\n\nwhat do my pages say?")
        chat.messages[2]["content"] = "what do my pages say?"
        await chat.say("more")
        one(chat.sessions)


async def test_a_picture_stays_and_a_new_session_gets_it_at_its_place(home: Path) -> None:
    async with opened(home) as (app, chat):
        await chat.say([{"type": "text", "text": "see this picture"}, PICTURE])
        await chat.say("what is in the picture?")
        assert PIXEL in str(app.core.model.requests[-1])
        chat.messages[1]["content"] = "Something else."
        await chat.say([PICTURE])
        assert chat.sessions[2] != one(chat.sessions[:2])
        sent = str(app.core.model.requests[-1])
        assert PIXEL in sent
        assert "user: see this picture\\n[image-1.png]\\n\\nassistant: Something else." in sent
        task = (await app.client.get(f"/api/tasks/{chat.tasks[2]}")).json()
        assert [each["name"] for each in task["attachments"]] == ["image-1.png"]
        assert task["task"] == "(no words; files: image-1.png)"


async def test_system_messages_are_instructions_of_their_turn(home: Path) -> None:
    async with opened(home) as (app, chat):
        chat.messages.append({"role": "system", "content": "Answer in <b>rhymes</b>."})
        chat.messages.append({"role": "developer", "content": "Be kind."})
        await chat.say("hi")
        first = str(app.core.model.requests[-1]["messages"][0])
        assert '<instructions from="the program that sent the task">' in first
        assert "Answer in <b>rhymes</b>.\\n\\nBe kind.\\n</instructions>" in first
        task = (await app.client.get(f"/api/tasks/{chat.tasks[0]}")).json()
        assert task["task"] == "hi"
        chat.messages[0]["content"] = "Answer in prose."
        await chat.say("and now?")
        sent = str(app.core.model.requests[-1])
        assert "Answer in prose." in sent
        assert "rhymes" not in sent
        one(chat.sessions)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_question_is_answered_by_the_next_message(home: Path, *, stream: bool) -> None:
    async with opened(home) as (app, chat):
        asked = await chat.say("ask first", stream=stream)
        assert "touch a" in asked
        assert "Reply yes to allow it, or no." in asked
        again = await chat.say("do something else", stream=stream)
        assert "This question takes yes or no and nothing else: nothing was done." in again
        assert "touch a" in again
        assert await chat.say("No.", stream=stream) == "Then I leave it."
        session = one(chat.sessions)
        tasks = (await app.client.get(f"/api/tasks?session_id={session}")).json()["tasks"]
        assert [each["task"] for each in tasks] == ["ask first"]
        assert await chat.say("thanks", stream=stream) == "Hello."
        one(chat.sessions)


@pytest.mark.parametrize(
    ("answer", "stored"), [("2", "blue"), ("red", "red"), ("a warm one", "a warm one")]
)
async def test_an_option_is_chosen_by_its_number_its_text_or_other_words(
    home: Path, answer: str, stored: str
) -> None:
    async with opened(home) as (app, chat):
        asked = await chat.say("paint it")
        assert "**Which colour?**\n\n1. red\n2. blue\n\nReply with a number" in asked
        assert await chat.say(answer) == "Painted."
        shown = (await app.client.get("/api/questions?status=answered")).json()["questions"]
        assert [each["answer"]["text"] for each in shown] == [stored]


@pytest.mark.first_rows(1)
@pytest.mark.parametrize(
    ("answers", "ends"),
    [
        (["pour slowly", "yes"], "The tea is ready."),
        (["no"], "Stopped because the request was rejected."),
    ],
)
async def test_a_plan_is_changed_carried_out_or_rejected(
    home: Path, answers: list[str], ends: str
) -> None:
    settings = {"LARKSPUR_AGENT__GATES": "adaptive", "LARKSPUR_AGENT__PLAN_REVIEW": "always"}
    async with opened(home, **settings) as (_, chat):
        assert "1. boil\n2. pour\n\nReply yes to carry out this plan" in await chat.say("tea")
        for answer in answers[:-1]:
            assert "2. pour slowly" in await chat.say(answer)
        assert await chat.say(answers[-1]) == ends
        await chat.say("thanks")
        one(chat.sessions)


async def test_a_picture_of_an_answer_reaches_the_run(home: Path) -> None:
    async with opened(home) as (app, chat):
        await chat.say("paint it")
        assert await chat.say([{"type": "text", "text": "this one"}, PICTURE]) == "Painted."
        assert PIXEL in str(app.core.model.requests[-1])
        one(chat.sessions)
        one(chat.tasks)


async def test_another_branch_is_a_fork_and_a_shorter_history_a_new_session(home: Path) -> None:
    async with opened(home) as (app, chat):
        await chat.say("make notes")
        before = list(chat.messages)
        await chat.say("one way")
        chat.messages = list(before)
        await chat.say("the other way")
        first, second = chat.sessions[1:]
        assert first != second
        fork = (await app.client.get(f"/api/sessions/{second}")).json()
        assert fork["forked_from"] == first
        sent = str(app.core.model.requests[-1])
        assert "one way" not in sent
        assert "The conversation so far" not in sent
        await chat.say("on")
        assert chat.sessions[-1] == second
        chat.messages = chat.messages[-2:]
        await chat.say("after the last ones")
        assert chat.sessions[-1] not in {first, second}
        assert "The conversation so far" in str(app.core.model.requests[-1])


async def test_the_header_and_the_name_of_the_user_decide_otherwise(home: Path) -> None:
    async with opened(home) as (_, chat):
        await chat.say("hi", user="ann")
        before = list(chat.messages)
        await chat.say("more", user="ben")
        chat.messages = list(before)
        await chat.say("more", user="ann", extra_headers={"x-larkspur-session": "new"})
        first, second, third = chat.sessions
        assert len({first, second, third}) == 3
        chat.messages = list(before)
        await chat.say("more", user="ann", extra_headers={"x-larkspur-session": second})
        assert chat.sessions[-1] == second
        chat.messages = list(before)
        await chat.say("more", user="ann")
        assert chat.sessions[-1] == first
        named = {"x-larkspur-session": third}
        assert "1. red" in await chat.say("paint it", extra_headers=named)
        assert await chat.say("1", extra_headers=named) == "Painted."


async def test_after_a_failure_or_a_disconnect_the_session_goes_on(home: Path) -> None:
    import openai  # noqa: PLC0415 - slow to import, and collected in every worker

    async with opened(home) as (app, chat):
        await chat.say("hi")
        with pytest.raises(openai.APIStatusError):
            await chat.say("fail")
        chat.messages[-1]["content"] = "better"
        await chat.say("and this")  # its program keeps the message that failed
        one(chat.sessions)
        stream = await chat.client.chat.completions.create(
            model="larkspur",
            messages=[*chat.messages, {"role": "user", "content": "slow"}],
            stream=True,
        )
        assert (await anext(stream)).choices[0].delta.role == "assistant"
        heard = (await anext(stream)).choices[0].delta.content
        await stream.close()
        app.core.model.release("slow")
        chat.messages += [
            {"role": "user", "content": "slow"},
            {"role": "assistant", "content": heard},
        ]
        await until_remembered(home, chat)
        await chat.say("go on")
        one(chat.sessions)


async def test_a_history_continues_its_session_at_another_gateway(home: Path) -> None:
    async with opened(home) as (_, chat):
        await chat.say("make notes")
    async with opened(home) as (_, later):
        later.messages = chat.messages
        assert await later.say("what do the notes say?") == "They say milk."
        assert later.sessions == chat.sessions


async def test_another_principal_does_not_continue_a_session(home: Path) -> None:
    async with opened(home) as (app, chat):
        await chat.say("hi")
        transcript = transcript_hash("", read_messages(inputs_of(chat)))
        conversations = app.services.gateway.conversations
        for principal in (Principal("lark:app:ou_1", roles=frozenset({"owner"})), Principal("")):
            assert await conversations.take(principal, transcript) is None
        found = await conversations.take(LOCAL_OWNER, transcript)
        assert found is not None
        assert found.session_id == chat.sessions[0]


async def test_of_several_questions_one_is_named_by_its_code(home: Path) -> None:
    async with opened(home) as (app, chat):
        await chat.say("a garden")
        seen: list[str] = []

        def are_both_asked(envelope: dict[str, Any]) -> bool:
            if envelope["event"] == "workflow.question.asked":
                seen.append(envelope["payload"]["question_id"])
            return len(seen) == 2

        await app.core.until(SessionId(chat.sessions[0]), are_both_asked)
        which = await chat.say("here")
        assert "2 questions wait for an answer: nothing was done." in which
        assert "Where?" in which
        assert "With earth?" in which
        left = await chat.say(f"here {seen[0][-6:]}")
        assert "waits for an answer" in left
        assert seen[0] not in left
        assert seen[1] in left
        assert await chat.say("so") == "It grows."
        one(chat.sessions)
