"""The offline demo model: every example of its catalogue, in both languages, as it is played."""

from typing import Any

import msgspec
import pytest

from internal.agent.domain.messages import Message, Part, Text, ToolCall, ToolResult, user_message
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.plans import PlanEdit, PlanReview
from internal.agent.domain.questions import Decision, Question
from internal.agent.domain.react.steps import Act, Ask, Done, Pause
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.llm import (
    ModelRequest,
    ModelResponse,
    ModelStreamEvent,
    TextDelta,
    ToolChoice,
)
from internal.llm.offline.jobs import detect_language, load_catalog
from internal.llm.offline.model import OfflineModel
from internal.llm.registry import OFFLINE_MODEL
from tests.support import turn_driver

ACTIONS = (
    "list_dir", "read_file", "write_file", "shell", "web_fetch", "search_files", "request_user",
)  # fmt: skip
NAMES = ("plan", "update_plan", "clarify", *ACTIONS)
TOOLS = tuple(ToolSpec(name, name, {"type": "object"}, "read") for name in NAMES)


class Told:
    """Plays the agent: answers the model's calls until it has a final answer."""

    def __init__(self, tools: tuple[ToolSpec, ...] = TOOLS, choice: ToolChoice = "auto") -> None:
        self.tools, self.choice = tools, choice
        self.messages: list[Message] = []
        self.results: dict[str, tuple[str, bool]] = {}

    async def ask(self, text: str) -> str:
        self.messages.append(user_message(text))
        for _ in range(30):
            reply = await self.hear()
            self.messages.append(Message("assistant", reply.parts))
            calls = self.messages[-1].calls
            if not calls:
                return self.messages[-1].text
            assert len(calls) == 1
            results: list[Part] = []
            for call in calls:
                given_, failed = self.results.get(call.name, (f"result of {call.name}", False))
                results.append(ToolResult(call.call_id, given_, failed))
            self.messages.append(Message("user", tuple(results)))
        raise AssertionError("it never came to an end")

    async def hear(self) -> ModelResponse:
        request = ModelRequest(
            OFFLINE_MODEL, "", tuple(self.messages), tools=self.tools, tool_choice=self.choice
        )
        pieces: list[ModelStreamEvent] = [piece async for piece in OfflineModel().stream(request)]
        *words, reply = pieces
        assert isinstance(reply, ModelResponse)
        said = "".join(piece.text for piece in words if isinstance(piece, TextDelta))
        assert said == "".join(part.text for part in reply.parts if isinstance(part, Text))
        assert all(part.text.strip() for part in reply.parts if isinstance(part, Text))
        return reply

    @property
    def calls(self) -> list[ToolCall]:
        return [call for message in self.messages for call in message.calls]

    @property
    def names(self) -> str:
        return " ".join(call.name for call in self.calls)


@pytest.mark.parametrize("example", load_catalog().examples)
async def test_every_example_comes_to_an_answer_in_its_language(example: str) -> None:
    told = Told()
    answer = await told.ask(example)
    assert "Traceback" not in answer
    assert detect_language(answer) == detect_language(example) or detect_language(example) == "en"
    assert answer.endswith(("the offline demo model", "离线演示模型"))
    if told.calls:
        assert told.calls[0].name == "plan"
        steps = told.calls[0].arguments["steps"]
        done = [call for call in told.calls if call.name in ACTIONS]
        closed = [call.arguments for call in told.calls if call.name == "update_plan"]
        assert len(done) == len(steps)
        assert closed == [
            {"step_id": str(n), "status": "completed"} for n in range(1, len(steps) + 1)
        ]


@pytest.mark.parametrize(
    ("ask", "tool", "arguments"),
    [
        ("list the files here", "list_dir", {"path": "."}),
        ("List the files in docs/adr.", "list_dir", {"path": "docs/adr"}),
        ("列出文件", "list_dir", {"path": "."}),
        ("列出 docs 里的文件。", "list_dir", {"path": "docs"}),
        (
            'write "good morning" to a.txt',
            "write_file",
            {"path": "a.txt", "content": "good morning\n"},
        ),
        ("把“早上好”写到 a.txt", "write_file", {"path": "a.txt", "content": "早上好\n"}),
        ("count words in notes.md", "read_file", {"path": "notes.md"}),
        ("统计 notes.md 的字数", "read_file", {"path": "notes.md"}),
        ("run `echo hello` in the shell", "shell", {"command": "echo hello"}),
        ("运行 `echo hello`", "shell", {"command": "echo hello"}),
        ("fetch https://example.com/a?b=c", "web_fetch", {"url": "https://example.com/a?b=c"}),
        ("抓取 https://example.com", "web_fetch", {"url": "https://example.com"}),
        ("在文件里搜索 云雀", "search_files", {"pattern": "云雀"}),
        ("读一下 notes.md", "read_file", {"path": "notes.md"}),
        ("run touch hello.txt", "shell", {"command": "touch hello.txt"}),
        ("运行 touch hello.txt", "shell", {"command": "touch hello.txt"}),
        ("run echo hi in the shell", "shell", {"command": "echo hi"}),
        ('ask me "What now?"', "request_user", {"question": "What now?"}),
        ("问我“去哪儿？”", "request_user", {"question": "去哪儿？"}),  # noqa: RUF001  # as people type it
        (
            "ask me",
            "request_user",
            {
                "question": "When do larks sing best?",
                "options": ["In spring", "In summer", "At dawn", "Never"],
            },
        ),
        (
            "让我选几个",
            "request_user",
            {
                "question": "你愿意什么时候出门听云雀？可以选几个。",  # noqa: RUF001  # as people type it
                "options": ["春天", "夏天", "清晨", "从不"],
                "multiple": True,
            },
        ),
    ],
)
async def test_what_is_asked_is_what_is_done(
    ask: str, tool: str, arguments: dict[str, str]
) -> None:
    told = Told()
    await told.ask(ask)
    assert (told.calls[1].name, told.calls[1].arguments) == (tool, arguments)


@pytest.mark.parametrize(
    ("ask", "line"),
    [
        ("write a haiku about lark to notes.md", "A lark at dawn"),
        ("写一首关于云雀的俳句到 notes.md", "晨光里云雀"),
    ],
)
async def test_a_haiku_has_three_lines_and_is_shown(ask: str, line: str) -> None:
    told = Told()
    answer = await told.ask(ask)
    written = told.calls[1].arguments["content"]
    assert line in written
    assert len(written.splitlines()) == 3
    assert written.strip() in answer


async def test_the_answer_is_made_of_the_tools_result() -> None:
    told = Told()
    told.results["read_file"] = ("one two  three\n四五", False)
    assert "notes.md has 5 words" in await told.ask("count the words in notes.md")
    told.results["shell"] = ("hello\n", False)
    assert "hello" in await told.ask("run `echo hello`")


async def test_three_errands_make_a_complex_plan_whose_steps_are_opened_first() -> None:
    told = Told()
    answer = await told.ask("list the files here, then read a.md and then run `date`")
    step = "clarify {} update_plan"
    steps = " ".join(step.format(tool) for tool in ("list_dir", "read_file", "shell"))
    assert told.names == f"plan {steps}"
    assert told.calls[0].arguments["complexity"] == "complex"
    assert [call.arguments["step_id"] for call in told.calls if call.name == "clarify"] == [*"123"]
    for name in ("list_dir", "read_file", "shell"):
        assert f"result of {name}" in answer


async def test_a_failed_step_is_told_and_what_comes_after_is_left() -> None:
    told = Told()
    told.results["shell"] = ("nobody allowed this", True)
    answer = await told.ask("运行 `rm -rf x`，然后列出文件")  # noqa: RUF001  # as people type it
    assert told.names == "plan shell update_plan"
    assert told.calls[-1].arguments["status"] == "failed"
    assert "nobody allowed this" in answer
    assert "没有继续做" in answer


async def test_a_refused_plan_means_nothing_is_done() -> None:
    told = Told()
    told.results["plan"] = ("no, do not", True)
    answer = await told.ask("list the files here")
    assert told.names == "plan"
    assert "no, do not" in answer


async def test_without_the_tool_it_says_so() -> None:
    told = Told(tuple(tool for tool in TOOLS if tool.name != "shell"))
    answer = await told.ask("run `date`")
    assert "shell" not in told.names
    assert "shell is not available" in answer


async def test_without_any_tools_it_neither_plans_nor_pretends() -> None:
    told = Told(())
    assert "not available" in await told.ask("list the files here")
    assert told.calls == []


async def test_when_it_may_not_call_any_more_it_says_what_is_left() -> None:
    told = Told(choice="none")
    assert "Stopped before" in await told.ask("list the files here")
    assert told.calls == []


async def test_a_new_request_is_a_new_job_also_in_the_middle_of_another() -> None:
    told = Told()
    await told.ask("list the files here")
    await told.ask("list the files here")
    assert told.names == "plan list_dir update_plan plan list_dir update_plan"
    ids = [call.call_id for call in told.calls]
    assert len(set(ids)) == len(ids)
    # steering comes in the same message as the results
    call = ToolCall("c1", "list_dir", {"path": "."})
    steered = Message("user", (ToolResult("c1", "a.txt"), Text("what is 2+2?")))
    told.messages += [user_message("list the files here"), Message("assistant", (call,)), steered]
    reply = await told.hear()
    assert Message("assistant", reply.parts).text.startswith("2+2 = 4")


async def test_the_same_errand_twice_is_done_twice() -> None:
    told = Told()
    await told.ask("run `date` then run `date`")
    assert told.names == "plan shell update_plan shell update_plan"


@pytest.mark.parametrize(
    "ask",
    ["hello", "你好", "who are you?", "你是谁？", "prove Fermat", "证明费马"],  # noqa: RUF001  # as people type it
)
async def test_it_says_what_it_is(ask: str) -> None:
    answer = await Told().ask(ask)
    assert ("offline demo model" in answer) or ("离线演示模型" in answer)


@pytest.mark.parametrize(
    ("ask", "answer"),
    [("what is 6×7?", "6×7 = 42"), ("算一下 2^10", "1024"), ("6*7 等于多少？", "42")],  # noqa: RUF001  # as people type it
)
async def test_sums_in_a_persons_words(ask: str, answer: str) -> None:
    assert answer in await Told().ask(ask)


async def test_half_characters_do_not_break_it() -> None:
    told = Told()
    told.results["read_file"] = ("half \ud83d", False)
    assert await told.ask("read \ud800.md")
    assert (await told.ask("read a.md")).encode()


async def test_an_endless_text_is_not_searched_for_patterns() -> None:
    assert "did not understand" in await Told().ask("write " + "a to " * 100_000)


async def test_a_plan_is_three_steps_of_real_work() -> None:
    told = Told()
    answer = await told.ask("plan a walk in the hills")
    step = "clarify {} update_plan"
    steps = " ".join(step.format(tool) for tool in ("list_dir", "write_file", "read_file"))
    assert told.names == f"plan {steps}"
    assert told.calls[0].arguments["complexity"] == "complex"
    assert "# Plan: a walk in the hills" in answer


@pytest.mark.parametrize(
    ("ask", "tools"),
    [
        ("plan a walk, then run `date`", "list_dir write_file read_file shell"),
        ("run touch a then run touch b", "shell shell"),
        ("运行 touch a，然后问我", "shell request_user"),  # noqa: RUF001  # as people type it
    ],
)
async def test_new_words_can_stand_in_a_row(ask: str, tools: str) -> None:
    told = Told()
    await told.ask(ask)
    assert " ".join(call.name for call in told.calls if call.name in ACTIONS) == tools


class Watched:
    """Plays the model against the real Turn, with people: what is asked is answered by the test."""

    def __init__(self, review: PlanReview = "off") -> None:
        given = turn_driver.run_config("strict", Policy(), people=True)
        self.turn = turn_driver.start_turn(msgspec.structs.replace(given, plan_review=review))
        self.ran: list[str] = []

    async def until_asked(self, ask: str = "") -> Question:
        if ask:
            self.turn.messages[-1] = user_message(ask)
        while True:
            match self.turn.next():
                case Pause(question):
                    return question
                case Ask() as move:
                    await self.hear(move)
                case Act(calls):
                    self.ran += [call.name for call in calls]
                    turn_driver.run_calls(self.turn)
                case Done():
                    raise AssertionError("it ended unasked")

    async def answer(self, ask: str = "") -> str:
        try:
            question = await self.until_asked(ask)
        except AssertionError:
            return turn_driver.outcome(self.turn).answer
        raise AssertionError(f"asked: {question}")

    async def hear(self, move: Ask) -> None:
        choice: ToolChoice = "none" if move.final else "auto"
        request = ModelRequest(
            OFFLINE_MODEL, "", tuple(move.messages), tools=turn_driver.TOOLS, tool_choice=choice
        )
        pieces = [piece async for piece in OfflineModel().stream(request)]
        reply = pieces[-1]
        assert isinstance(reply, ModelResponse)
        self.turn.add_reply(reply.parts, OFFLINE_MODEL, reply.usage, 0.0)

    def say(self, decision: Decision, text: str = "", **more: Any) -> None:
        given = turn_driver.make_answer(self.turn, decision, text)
        self.turn.resolve(msgspec.structs.replace(given, **more))


async def test_a_command_waits_for_a_yes() -> None:
    watched = Watched()
    question = await watched.until_asked("run touch hello.txt")
    assert [asking.what for asking in question.calls] == ["touch hello.txt"]
    watched.say("approve")
    assert "Output of `" in await watched.answer()
    assert watched.ran == ["shell"]


async def test_a_no_is_told_with_its_reason() -> None:
    watched = Watched()
    await watched.until_asked("run touch hello.txt then read a.md")
    watched.say("reject", "not here")
    answer = await watched.answer()
    assert "not here" in answer
    assert "Skipped because of that: Read a.md" in answer
    assert watched.ran == []


@pytest.mark.parametrize("ask", ["ask me a question", "问我一个问题"])
async def test_an_answer_is_repeated(ask: str) -> None:
    watched = Watched()
    question = await watched.until_asked(ask)
    assert (question.kind, len(question.options)) == ("clarify", 4)
    watched.say("text", "In autumn!")
    assert "In autumn!" in await watched.answer()


async def test_a_plan_is_agreed_to_first() -> None:
    watched = Watched("always")
    question = await watched.until_asked("read a.md then read b.md")
    assert question.kind == "plan"
    assert watched.ran == []
    watched.say("approve")
    await watched.answer()
    assert watched.ran == ["read_file", "read_file"]


async def test_what_is_missing_makes_another_plan() -> None:
    watched = Watched("always")
    await watched.until_asked("read a.md")
    watched.say("text", "be quick,\nplease")
    question = await watched.until_asked()
    assert question.plan is not None
    wish = "Keep in mind: be quick, please"
    assert [step.description for step in question.plan.steps] == ["Read a.md", wish]
    watched.say("text", "and kind")
    question = await watched.until_asked()
    assert question.plan is not None
    assert len(question.plan.steps) == 3
    watched.say("approve")
    await watched.answer()
    assert watched.ran == ["read_file"]
    assert watched.turn.plan is not None
    assert {step.status for step in watched.turn.plan.steps} == {"completed"}


async def test_a_step_that_was_taken_out_is_not_done() -> None:
    watched = Watched("always")
    await watched.until_asked("read a.md then read b.md then read c.md")
    watched.say("edit", edit=PlanEdit(("Dance", "Read c.md", "Read a.md")))
    await watched.until_asked()
    watched.say("approve")
    answer = await watched.answer()
    assert watched.ran == ["read_file", "read_file"]
    assert "Removed from the plan, so not done: Read b.md." in answer
    assert "The demo model cannot do this step: Dance." in answer
    assert watched.turn.plan is not None
    assert [step.status for step in watched.turn.plan.steps] == [
        "skipped",
        "completed",
        "completed",
    ]


async def test_a_plan_nobody_agreed_to_ends_in_words_about_it() -> None:
    watched = Watched("always")
    await watched.until_asked("read a.md")
    watched.say("expired")
    answer = await watched.answer()
    assert "The plan was not approved" in answer
    assert "Nobody agreed to the plan in time" in answer
    assert watched.ran == []
