"""The offline demo model: every example of its catalogue, in both languages."""

from typing import Any

import msgspec
import pytest

from internal.agent.domain.delegation.reports import END_OPENING, REPORT_OPENING
from internal.agent.domain.messages import Message, Part, Text, ToolCall, ToolResult, user_message
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.plans import PlanEdit, PlanReview
from internal.agent.domain.questions import Decision, Question
from internal.agent.domain.react.request_messages import RequestMessages
from internal.agent.domain.react.steps import Act, Ask, AwaitTasks, Done, Pause
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.llm import (
    ModelRequest,
    ModelResponse,
    ModelStreamEvent,
    TextDelta,
    ToolChoice,
)
from internal.llm.offline.catalog import detect_language, load_catalog
from internal.llm.offline.model import OfflineModel
from internal.model_providers.registry import OFFLINE_MODEL
from tests.support import turn_driver
from tests.support.weighed_messages import weighed

ACTIONS = (
    "list_dir", "read_file", "write_file", "shell", "web_fetch", "search_files", "request_user",
    "subagent", "create_task",
)  # fmt: skip
NAMES = ("plan", "update_plan", "clarify", *ACTIONS)
TOOLS = tuple(ToolSpec(name, name, {"type": "object"}, "read") for name in NAMES)


class AgentStub:
    """Answers the model's calls until it gives a final answer."""

    def __init__(self, tools: tuple[ToolSpec, ...] = TOOLS, choice: ToolChoice = "auto") -> None:
        self.tools, self.choice = tools, choice
        self.messages: list[Message] = []
        self.results: dict[str, tuple[str, bool]] = {}

    async def ask(self, text: str) -> str:
        self.messages.append(user_message(text))
        for _ in range(30):
            reply = await self.request_reply()
            self.messages.append(Message("assistant", reply.parts))
            calls = self.messages[-1].calls
            if not calls:
                return self.messages[-1].text
            assert len(calls) == 1
            results: list[Part] = []
            for call in calls:
                text_, failed = self.results.get(call.name, (f"result of {call.name}", False))
                results.append(ToolResult(call.call_id, text_, failed))
            self.messages.append(Message("user", tuple(results)))
        raise AssertionError("the model gave no final answer")

    async def request_reply(self) -> ModelResponse:
        messages = RequestMessages(weighed(self.messages))  # as a Turn has them
        request = ModelRequest(
            OFFLINE_MODEL, "", messages, tools=self.tools, tool_choice=self.choice
        )
        pieces: list[ModelStreamEvent] = [piece async for piece in OfflineModel().stream(request)]
        *deltas, reply = pieces
        assert isinstance(reply, ModelResponse)
        streamed = "".join(piece.text for piece in deltas if isinstance(piece, TextDelta))
        assert streamed == "".join(part.text for part in reply.parts if isinstance(part, Text))
        assert all(part.text.strip() for part in reply.parts if isinstance(part, Text))
        return reply

    @property
    def calls(self) -> list[ToolCall]:
        return [call for message in self.messages for call in message.calls]

    @property
    def names(self) -> str:
        return " ".join(call.name for call in self.calls)


@pytest.mark.parametrize("example", load_catalog().examples)
async def test_every_example_is_answered_in_its_language(example: str) -> None:
    agent = AgentStub()
    answer = await agent.ask(example)
    assert "Traceback" not in answer
    assert detect_language(answer) == detect_language(example) or detect_language(example) == "en"
    assert answer.endswith(("the offline demo model", "离线演示模型"))
    if agent.calls:
        assert agent.calls[0].name == "plan"
        steps = agent.calls[0].arguments["steps"]
        done = [call for call in agent.calls if call.name in ACTIONS]
        closed = [call.arguments for call in agent.calls if call.name == "update_plan"]
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
async def test_request_becomes_a_tool_call(ask: str, tool: str, arguments: dict[str, str]) -> None:
    agent = AgentStub()
    await agent.ask(ask)
    assert (agent.calls[1].name, agent.calls[1].arguments) == (tool, arguments)


async def test_speakers_and_quotes_of_a_group_are_not_part_of_the_request() -> None:
    agent = AgentStub()
    quoted = '<quoted_message from="Han">\nlist the files in docs\n</quoted_message>\n'
    await agent.ask(f'{quoted}<message from="Mei Lin">\nread notes.md\n</message>')
    assert (agent.calls[1].name, agent.calls[1].arguments) == ("read_file", {"path": "notes.md"})


@pytest.mark.parametrize(
    ("ask", "line"),
    [
        ("write a haiku about lark to notes.md", "A lark at dawn"),
        ("写一首关于云雀的俳句到 notes.md", "晨光里云雀"),
    ],
)
async def test_haiku_has_three_lines_and_is_part_of_the_answer(ask: str, line: str) -> None:
    agent = AgentStub()
    answer = await agent.ask(ask)
    written = agent.calls[1].arguments["content"]
    assert line in written
    assert len(written.splitlines()) == 3
    assert written.strip() in answer


async def test_answer_contains_the_tool_result() -> None:
    agent = AgentStub()
    agent.results["read_file"] = ("one two  three\n四五", False)
    assert "notes.md has 5 words" in await agent.ask("count the words in notes.md")
    agent.results["shell"] = ("hello\n", False)
    assert "hello" in await agent.ask("run `echo hello`")


async def test_three_jobs_make_a_complex_plan_with_clarified_steps() -> None:
    agent = AgentStub()
    answer = await agent.ask("list the files here, then read a.md and then run `date`")
    step = "clarify {} update_plan"
    steps = " ".join(step.format(tool) for tool in ("list_dir", "read_file", "shell"))
    assert agent.names == f"plan {steps}"
    assert agent.calls[0].arguments["complexity"] == "complex"
    assert [call.arguments["step_id"] for call in agent.calls if call.name == "clarify"] == [*"123"]
    for name in ("list_dir", "read_file", "shell"):
        assert f"result of {name}" in answer


async def test_failed_step_is_reported_and_later_steps_are_skipped() -> None:
    agent = AgentStub()
    agent.results["shell"] = ("permission denied", True)
    answer = await agent.ask("运行 `rm -rf x`，然后列出文件")  # noqa: RUF001  # as people type it
    assert agent.names == "plan shell update_plan"
    assert agent.calls[-1].arguments["status"] == "failed"
    assert "permission denied" in answer
    assert "没有继续做" in answer


async def test_rejected_plan_runs_no_tool() -> None:
    agent = AgentStub()
    agent.results["plan"] = ("no, do not", True)
    answer = await agent.ask("list the files here")
    assert agent.names == "plan"
    assert "no, do not" in answer


async def test_missing_tool_is_reported() -> None:
    agent = AgentStub(tuple(tool for tool in TOOLS if tool.name != "shell"))
    answer = await agent.ask("run `date`")
    assert "shell" not in agent.names
    assert "shell is not available" in answer


async def test_no_plan_is_made_without_tools() -> None:
    agent = AgentStub(())
    assert "not available" in await agent.ask("list the files here")
    assert agent.calls == []


async def test_unfinished_jobs_are_listed_when_calls_are_not_allowed() -> None:
    agent = AgentStub(choice="none")
    assert "Stopped before" in await agent.ask("list the files here")
    assert agent.calls == []


async def test_new_request_starts_a_new_job_even_during_another() -> None:
    agent = AgentStub()
    await agent.ask("list the files here")
    await agent.ask("list the files here")
    assert agent.names == "plan list_dir update_plan plan list_dir update_plan"
    ids = [call.call_id for call in agent.calls]
    assert len(set(ids)) == len(ids)
    # steering comes in the same message as the results
    call = ToolCall("c1", "list_dir", {"path": "."})
    steered = Message("user", (ToolResult("c1", "a.txt"), Text("what is 2+2?")))
    agent.messages += [user_message("list the files here"), Message("assistant", (call,)), steered]
    reply = await agent.request_reply()
    assert Message("assistant", reply.parts).text.startswith("2+2 = 4")


async def test_repeated_job_runs_twice() -> None:
    agent = AgentStub()
    await agent.ask("run `date` then run `date`")
    assert agent.names == "plan shell update_plan shell update_plan"


@pytest.mark.parametrize(
    "ask",
    ["hello", "你好", "who are you?", "你是谁？", "prove Fermat", "证明费马"],  # noqa: RUF001  # as people type it
)
async def test_unknown_requests_are_answered_with_an_introduction(ask: str) -> None:
    answer = await AgentStub().ask(ask)
    assert ("offline demo model" in answer) or ("离线演示模型" in answer)


@pytest.mark.parametrize(
    ("ask", "answer"),
    [("what is 6×7?", "6×7 = 42"), ("算一下 2^10", "1024"), ("6*7 等于多少？", "42")],  # noqa: RUF001  # as people type it
)
async def test_arithmetic_requests_are_calculated(ask: str, answer: str) -> None:
    assert answer in await AgentStub().ask(ask)


async def test_lone_surrogates_are_accepted() -> None:
    agent = AgentStub()
    agent.results["read_file"] = ("half \ud83d", False)
    assert await agent.ask("read \ud800.md")
    assert (await agent.ask("read a.md")).encode()


async def test_very_long_request_is_not_matched_against_patterns() -> None:
    assert "did not understand" in await AgentStub().ask("write " + "a to " * 100_000)


async def test_plan_request_runs_three_tools() -> None:
    agent = AgentStub()
    answer = await agent.ask("plan a walk in the hills")
    step = "clarify {} update_plan"
    steps = " ".join(step.format(tool) for tool in ("list_dir", "write_file", "read_file"))
    assert agent.names == f"plan {steps}"
    assert agent.calls[0].arguments["complexity"] == "complex"
    assert "# Plan: a walk in the hills" in answer


@pytest.mark.parametrize(
    ("ask", "tools"),
    [
        ("plan a walk, then run `date`", "list_dir write_file read_file shell"),
        ("run touch a then run touch b", "shell shell"),
        ("运行 touch a，然后问我", "shell request_user"),  # noqa: RUF001  # as people type it
    ],
)
async def test_jobs_joined_by_then_run_in_order(ask: str, tools: str) -> None:
    agent = AgentStub()
    await agent.ask(ask)
    assert " ".join(call.name for call in agent.calls if call.name in ACTIONS) == tools


class TurnDriver:
    """Runs the model against a real Turn; the test answers its questions."""

    def __init__(self, review: PlanReview = "off") -> None:
        config = turn_driver.run_config("strict", Policy(), people=True)
        self.turn = turn_driver.start_turn(msgspec.structs.replace(config, plan_review=review))
        self.ran: list[str] = []

    async def until_question(self, ask: str = "") -> Question:
        if ask:
            self.turn.messages[-1] = user_message(ask)
        while True:
            match self.turn.next():
                case Pause(question):
                    return question
                case Ask() as move:
                    await self.request_reply(move)
                case Act(calls):
                    self.ran += [call.name for call in calls]
                    turn_driver.run_calls(self.turn)
                case Done() | AwaitTasks():
                    raise AssertionError("the run ended without a question")

    async def answer(self, ask: str = "") -> str:
        try:
            question = await self.until_question(ask)
        except AssertionError:
            return turn_driver.outcome(self.turn).answer
        raise AssertionError(f"asked: {question}")

    async def request_reply(self, move: Ask) -> None:
        choice: ToolChoice = "none" if move.final else "auto"
        request = ModelRequest(
            OFFLINE_MODEL, "", tuple(move.messages), tools=turn_driver.TOOLS, tool_choice=choice
        )
        pieces = [piece async for piece in OfflineModel().stream(request)]
        reply = pieces[-1]
        assert isinstance(reply, ModelResponse)
        self.turn.add_reply(reply.parts, OFFLINE_MODEL, reply.usage, 0.0)

    def answer_question(self, decision: Decision, text: str = "", **more: Any) -> None:
        answer = turn_driver.make_answer(self.turn, decision, text)
        self.turn.resolve(msgspec.structs.replace(answer, **more))


async def test_command_waits_for_approval() -> None:
    driver = TurnDriver()
    question = await driver.until_question("run touch hello.txt")
    assert [asking.what for asking in question.calls] == ["touch hello.txt"]
    driver.answer_question("approve")
    assert "Output of `" in await driver.answer()
    assert driver.ran == ["shell"]


async def test_rejection_is_reported_with_its_reason() -> None:
    driver = TurnDriver()
    await driver.until_question("run touch hello.txt then read a.md")
    driver.answer_question("reject", "not here")
    answer = await driver.answer()
    assert "not here" in answer
    assert "Skipped because of that: Read a.md" in answer
    assert driver.ran == []


@pytest.mark.parametrize("ask", ["ask me a question", "问我一个问题"])
async def test_answer_to_a_question_is_part_of_the_final_answer(ask: str) -> None:
    driver = TurnDriver()
    question = await driver.until_question(ask)
    assert (question.kind, len(question.options)) == ("clarify", 4)
    driver.answer_question("text", "In autumn!")
    assert "In autumn!" in await driver.answer()


async def test_reviewed_plan_runs_after_approval() -> None:
    driver = TurnDriver("always")
    question = await driver.until_question("read a.md then read b.md")
    assert question.kind == "plan"
    assert driver.ran == []
    driver.answer_question("approve")
    await driver.answer()
    assert driver.ran == ["read_file", "read_file"]


async def test_feedback_makes_another_plan() -> None:
    driver = TurnDriver("always")
    await driver.until_question("read a.md")
    driver.answer_question("text", "be quick,\nplease")
    question = await driver.until_question()
    assert question.plan is not None
    note = "Keep in mind: be quick, please"
    assert [step.description for step in question.plan.steps] == ["Read a.md", note]
    driver.answer_question("text", "and kind")
    question = await driver.until_question()
    assert question.plan is not None
    assert len(question.plan.steps) == 3
    driver.answer_question("approve")
    await driver.answer()
    assert driver.ran == ["read_file"]
    assert driver.turn.plan is not None
    assert {step.status for step in driver.turn.plan.steps} == {"completed"}


async def test_removed_step_is_not_run() -> None:
    driver = TurnDriver("always")
    await driver.until_question("read a.md then read b.md then read c.md")
    driver.answer_question("edit", edit=PlanEdit(("Dance", "Read c.md", "Read a.md")))
    await driver.until_question()
    driver.answer_question("approve")
    answer = await driver.answer()
    assert driver.ran == ["read_file", "read_file"]
    assert "Removed from the plan, so not done: Read b.md." in answer
    assert "The demo model cannot do this step: Dance." in answer
    assert driver.turn.plan is not None
    assert [step.status for step in driver.turn.plan.steps] == [
        "skipped",
        "completed",
        "completed",
    ]


async def test_expired_plan_is_reported() -> None:
    driver = TurnDriver("always")
    await driver.until_question("read a.md")
    driver.answer_question("expired")
    answer = await driver.answer()
    assert "The plan was not approved" in answer
    assert "Nobody agreed to the plan in time" in answer
    assert driver.ran == []


REPORT = (
    '<attachment name="report.pdf" path="input/report.pdf" media_type="application/pdf">'
    "\nQuarterly report\n</attachment>\n"
)


@pytest.mark.parametrize(
    ("ask", "quoted"),
    [
        ("what is the total in report.pdf?", "> Total: 4,711 EUR"),
        ("report.pdf 里的 total 是多少？", "> Total: 4,711 EUR"),  # noqa: RUF001  # as people type it
        ("summarise report.pdf", "> Quarterly report\n> Total: 4,711 EUR\n> Signed by Mei"),
        ("summarise it", "> Quarterly report"),
        ("summarise [report.pdf]", "> Quarterly report"),
        ("what is the total in [report.pdf] ?", "> Total: 4,711 EUR"),
        ("[report.pdf]", "> Quarterly report"),
        ("总结一下这份文件", "> Quarterly report"),
        ("", "> Quarterly report"),
        ("How much did we sell?", "> Total: 4,711 EUR"),
        ("what is the weather in report.pdf?", "No line of input/report.pdf contains “weather”."),
    ],
)
async def test_questions_about_an_attached_file_are_answered_with_a_quotation(
    ask: str, quoted: str
) -> None:
    agent = AgentStub()
    agent.results["read_file"] = (
        "[PDF, 2 pages]\nQuarterly report\n\nTotal: 4,711 EUR\nSigned by Mei",
        False,
    )
    answer = await agent.ask(REPORT + ask)
    assert agent.calls[1].arguments == {"path": "input/report.pdf"}
    assert quoted in answer


async def test_a_file_of_an_earlier_message_is_found_by_its_name() -> None:
    agent = AgentStub()
    await agent.ask(f"{REPORT}hello")
    await agent.ask("read report.pdf")
    assert agent.calls[-2].arguments == {"path": "input/report.pdf"}


async def test_a_request_about_no_file_is_not_understood() -> None:
    assert "did not understand" in await AgentStub().ask("summarise it")


async def test_free_text_gets_all_answers_or_a_plain_sentence() -> None:
    agent = AgentStub()
    answer = await agent.ask("Hi! List the files here, and tell me what is 6*7.")
    assert "result of list_dir" in answer
    assert "6*7 = 42" in answer

    agent = AgentStub()
    answer = await agent.ask("list the files here and sing a song")
    assert agent.calls == []
    assert "did not understand “sing a song”" in answer
    assert "a few rules instead of a real model" in answer
    assert answer.count("\n- ") == 4
    assert "离线演示模型" in await agent.ask("今天天气怎么样")


async def test_a_long_file_is_quoted_in_part() -> None:
    agent = AgentStub()
    agent.results["read_file"] = ("lark " * 2_000, False)
    answer = await agent.ask(f"{REPORT}summarise report.pdf")
    assert "2000 words" in answer
    assert len(answer) < 1_200


@pytest.mark.parametrize(
    ("ask", "title"),
    [
        ("make a report about larks", "# A report about larks\n"),
        ("write me a report", "# A report about larks\n"),
        ("写一份关于登山的报告", "# 关于登山的报告\n"),
        ("写一份报告", "# 关于云雀的报告\n"),
    ],
)
async def test_a_report_is_written_to_the_folder_of_produced_files(ask: str, title: str) -> None:
    agent = AgentStub()
    await agent.ask(ask)
    assert agent.calls[1].arguments["path"] == "output/report.md"
    assert agent.calls[1].arguments["content"].startswith(title)


COMPARED = """## task-1 (task 1 · analyst): completed (final_answer) after 1 s
I described example-a.com:

| example-a.com | 13 | output/example-a.com.md |

— the offline demo model
File: example-a.com.md (artifact://1)

## task-2 (task 2 · analyst): completed (final_answer) after 1 s
| b.org | 5 | output/b.org.md |"""


async def test_names_are_compared_by_what_the_subtasks_answered() -> None:
    agent = AgentStub()
    agent.results["subagent"] = (COMPARED, False)
    answer = await agent.ask("Compare these sites: b.org, example-a.com and c.net")
    assert agent.names == "plan subagent update_plan"
    tasks = agent.calls[1].arguments["tasks"]
    assert [each["instruction"] for each in tasks] == [
        "Describe the site b.org in output/b.org.md",
        "Describe the site example-a.com in output/example-a.com.md",
        "Describe the site c.net in output/c.net.md",
    ]
    assert {each["agent_profile"]["role"] for each in tasks} == {"analyst"}
    assert "| example-a.com | 13 | output/example-a.com.md |\n| b.org | 5 |" in answer
    assert "largest number is that of example-a.com" in answer
    assert "Not described: c.net." in answer


async def test_a_comparison_without_descriptions_says_so() -> None:
    agent = AgentStub()
    answer = await agent.ask("比较 a.md、b.md 和 c.md")
    assert [each["instruction"] for each in agent.calls[1].arguments["tasks"]] == [
        f"介绍文件 {name}，写到 output/{name}.md"  # noqa: RUF001  # as people type it
        for name in ("a.md", "b.md", "c.md")
    ]
    assert "没有任务写出介绍" in answer
    assert "result of subagent" in answer


async def test_the_description_of_a_file_is_written_from_its_text() -> None:
    agent = AgentStub()
    agent.results["read_file"] = ("[a.md, 3 lines]\n\nlarks sing\nat dawn", False)
    answer = await agent.ask("[You do one part.]\n\nDescribe the file a.md in output/a.md.md")
    write = next(call for call in agent.calls if call.name == "write_file")
    assert "4 words" in write.arguments["content"]
    assert "> larks sing" in write.arguments["content"]
    assert "| a.md | 4 | output/a.md.md |" in answer


async def test_a_background_task_is_created_and_its_end_is_reported() -> None:
    agent = AgentStub()
    agent.results["create_task"] = ("task-9 (task 1) was created and runs.", False)
    answer = await agent.ask(
        "In the background, make a report about larks, and then tell me what is 6*7"
    )
    assert agent.calls[1].arguments == {"instruction": "make a report about larks"}
    assert "In the background, task 1 does this" in answer
    assert "6*7 = 42" in answer
    agent.messages.append(user_message(f"{END_OPENING}\n## task-9 (task 1): completed\nWritten."))
    assert "In the background, task 1 does this" in (await agent.request_reply()).parts[0].text  # type: ignore[union-attr]  # an answer is text
    results = "## task-9 (task 1): completed\nWritten.\nFile: report.md (artifact://1)"
    told = await agent.ask(f"{REPORT_OPENING}\n\n{results}")
    assert told == (
        "Tasks in the background have ended.\n\n**task 1**: completed\n\nWritten.\n- report.md"
        "\n\n— the offline demo model"
    )


async def test_a_background_task_that_is_not_understood_is_not_created() -> None:
    agent = AgentStub()
    assert "did not understand" in await agent.ask("sing a song in the background")
    assert agent.calls == []
