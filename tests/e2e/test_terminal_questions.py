"""Questions in a real terminal, with a gateway and in one process."""

import json
import re
import signal
from pathlib import Path

import pytest

from internal.channels.cli.render.theme import UNICODE
from tests.support.cli_environment import GATEWAY, LARKSPUR, PROCESS
from tests.support.scripted_model import Call, Fault, Reply, Rules, When
from tests.support.terminal import start_terminal
from tests.support.terminal_session import ReplProcess, frame_drawn, open_terminal

TOUCH = Call("shell", {"command": "touch made; echo 完成"})
ONCE = "[y] once"
YOU = UNICODE.prompt


async def run(repl: ReplProcess, *argv: str) -> tuple[int | None, str]:
    """Run another command of the same user."""
    process = await repl.place.start(*argv)
    out, err = await process.communicate()
    return process.returncode, (out + err).decode()


def is_made(repl: ReplProcess) -> bool:
    return (repl.place.folder / "made").exists()


def last_message(repl: ReplProcess) -> str:
    """Return the last message that the model received."""
    return json.dumps(repl.place.model.requests[-1]["messages"][-1], ensure_ascii=False)


async def runs_of(repl: ReplProcess) -> list[str]:
    code, output = await run(repl, "tasks", "--json")
    assert code == 0
    return [one["status"] for one in json.loads(output)]


@GATEWAY
async def test_a_key_approves_the_shown_command(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(calls=[TOUCH]), Reply(text="done")]
    async with open_terminal(way, home, environ, script) as repl:
        await repl.send("make it")
        await repl.tty.wait_for("! run?  touch made; echo 完成", ONCE, "! waiting for you")
        assert not is_made(repl)
        repl.tty.type("y")
        await repl.tty.wait_for("touch made; echo 完成  → yes", "✓ shell", "● done")
        assert is_made(repl)
        assert ONCE not in repl.tty.screen.text
        assert "answered by" not in repl.tty.screen.text
        (task,) = await runs_of(repl)
    assert task == "completed"


@PROCESS
@pytest.mark.slow
async def test_the_reason_of_a_denial_reaches_the_model(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(calls=[TOUCH])] * 3 + [Reply(text="then not")]
    async with open_terminal(way, home, environ, script) as repl:
        await repl.send("make it")
        await repl.tty.wait_for(ONCE)
        repl.tty.type("n")
        await repl.tty.wait_for("→ no", ONCE)
        await repl.tty.wait_until(lambda: len(repl.place.model.requests) == 2)
        repl.tty.type("e")
        await repl.tty.wait_for("esc back")
        repl.tty.type("请用 Python\r")
        await repl.tty.wait_for("→ no: 请用 Python", ONCE)
        await repl.tty.wait_until(lambda: len(repl.place.model.requests) == 3)
        assert "请用 Python" in last_message(repl)
        repl.tty.type("no, use a file instead\r")  # other words are the reason too
        await repl.tty.wait_for("→ no: no, use a file instead", "● then not")
        assert "use a file instead" in last_message(repl)
        assert not is_made(repl)


@pytest.mark.slow
async def test_an_approval_for_the_session_covers_later_calls(
    home: Path, environ: dict[str, str]
) -> None:
    script = [*[Reply(calls=[TOUCH])] * 2, Reply(text="done")]
    async with open_terminal("process", home, environ, script) as repl:
        await repl.send("make it twice")
        await repl.tty.wait_for("[a] this session")
        repl.tty.type("a")
        await repl.tty.wait_for("→ yes, for this session", "● done")
        assert repl.tty.screen.text.count("run?") == 0
        assert len(repl.place.model.requests) == 3


@GATEWAY
@pytest.mark.slow
async def test_a_rule_can_be_edited_before_it_is_saved(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    other = Call("shell", {"command": "touch other"})
    touch = Call("shell", {"command": "touch made"})
    script = [Reply(calls=[touch]), Reply(calls=[other]), Reply(text="done")]
    async with open_terminal(way, home, environ, script) as repl:
        await repl.send("make both")
        await repl.tty.wait_for("[p] always touch made")
        repl.tty.type("p")
        await repl.tty.wait_for(f"{YOU} shell(touch made)", "one per line")
        repl.tty.type("\x01\x0bshell(\r")
        await repl.tty.wait_for(
            "✕ ", f"{YOU} shell("
        )  # not a rule: the input is kept and nothing runs
        assert not is_made(repl)
        repl.tty.type("\x01\x0bshell(touch *)\r")
        await repl.tty.wait_for("→ yes, allowed by a rule from now on", "● done")
        assert is_made(repl)
        assert (repl.place.folder / "other").exists()
        repl.tty.type("/permissions\r")
        await repl.tty.wait_for("allow shell(touch *)")
        (number,) = re.findall(r"^(\d+) .*allow shell\(touch", repl.tty.screen.text, re.MULTILINE)
        repl.tty.type(f"/permissions remove {number}\r")
        await repl.tty.wait_for(f"Removed rule {number}.")


@pytest.mark.slow
async def test_several_calls_are_selected_one_by_one(home: Path, environ: dict[str, str]) -> None:
    calls = [Call("shell", {"command": f"touch {name}"}) for name in ("one", "two", "three")]
    script = [Reply(calls=calls), Reply(text="done")]
    async with open_terminal("process", home, environ, script) as repl:
        await repl.send("make three")
        await repl.tty.wait_for("! Run 3 commands?", "1 touch one", "3 touch three", "[n] deny all")
        repl.tty.type("1")
        await repl.tty.wait_for("✓ 1 touch one", "[enter] confirm 1")
        repl.tty.type("2")
        await repl.tty.wait_for("✓ 2 touch two", "[enter] confirm 2")
        repl.tty.type("1")
        await repl.tty.wait_for("  1 touch one", "[enter] confirm 1")
        repl.tty.type("3")
        await repl.tty.wait_for("[enter] confirm 2")
        repl.tty.type("\r")
        await repl.tty.wait_for("→ yes to 2 of 3", "● done")
        there = {path.name for path in repl.place.folder.iterdir()}
    assert there == {"two", "three"}


@pytest.mark.slow
async def test_a_change_is_shown_before_it_is_made(home: Path, environ: dict[str, str]) -> None:
    old = "".join(f"line {n}\n" for n in range(60))
    new = "".join(f"LINE {n} 行\n" for n in range(60))
    edit = Call("edit_file", {"path": "a.txt", "old_string": old, "new_string": new})
    script = [Reply(calls=[Call("read_file", {"path": "a.txt"})]), Reply(calls=[edit])]
    size = (80, 40)
    script.append(Reply(text="changed"))
    async with open_terminal("process", home, environ, script, size=size) as repl:
        (repl.place.folder / "a.txt").write_text(old)
        await repl.send("shout")
        await repl.tty.wait_for("! change?  a.txt", "-line 0", ONCE)
        (more,) = re.findall(r"… (\d+) more · Ctrl\+O shows all", repl.tty.screen.text)
        assert int(more) > 90
        assert "LINE 59" not in repl.tty.screen.text
        repl.tty.type("\x0f")
        await repl.tty.wait_for("+LINE 59 行", "larkspur answer ")
        assert (repl.place.folder / "a.txt").read_text() == old
        repl.tty.type("y")
        await repl.tty.wait_for("● changed")
        assert (repl.place.folder / "a.txt").read_text() == new


PLAN = Call(
    "plan", {"goal": "一份报告", "steps": ["collect", "write 写作"], "complexity": "complex"}
)


def planned(*after: Reply) -> list[Reply]:
    return [Reply(calls=[PLAN]), *after]


@PROCESS
@pytest.mark.slow
async def test_a_plan_is_edited_in_the_input(way: str, home: Path, environ: dict[str, str]) -> None:
    async with open_terminal(way, home, environ, planned(Reply(text="done"))) as repl:
        repl.tty.type("/计划 on\r")
        await repl.tty.wait_for("you approve every plan")
        await repl.send("report")
        await repl.tty.wait_for(
            "▣ approve plan?  一份报告", "1. collect", "2. write 写作", "[e] edit"
        )
        repl.tty.type("e")
        await repl.tty.wait_for(f"{YOU} 1. collect", "the plan's steps, one per line")
        repl.tty.type("\n3. mail it\r")
        await repl.tty.wait_for("→ edited", "collect → write 写作 → mail it", "3. mail it")
        await repl.tty.wait_for("[y] approve")  # the changed plan is shown again
        repl.tty.type("y")
        await repl.tty.wait_for("一份报告  → yes", "● done")
        assert "mail it" in last_message(repl)


@pytest.mark.slow
async def test_text_on_a_plan_is_feedback_for_a_new_plan(
    home: Path, environ: dict[str, str]
) -> None:
    again = Call("plan", {"goal": "shorter", "steps": ["write"], "complexity": "complex"})
    script = planned(Reply(calls=[again]), Reply(text="done"))
    async with open_terminal("process", home, environ, script, "--plan-review", "always") as repl:
        await repl.send("report")
        await repl.tty.wait_for("[y] approve")
        repl.tty.type("no, shorter please\r")  # starts with n but is not the key
        await repl.tty.wait_for("→ no, shorter please", "▣ approve plan?  shorter")
        assert "plan_feedback" in last_message(repl)
        await repl.tty.wait_for("[y] approve")
        repl.tty.type("y")
        await repl.tty.wait_for("shorter  → yes", "● done")


@pytest.mark.slow
async def test_a_rejected_plan_ends_the_run(home: Path, environ: dict[str, str]) -> None:
    script = planned(Reply(text="never said"))
    async with open_terminal("process", home, environ, script, "--plan-review", "always") as repl:
        await repl.send("report")
        await repl.tty.wait_for("[n] reject")
        repl.tty.type("n")
        await repl.tty.wait_for("✕ 一份报告  → no", "■ stopped")
        assert len(repl.place.model.requests) == 1
        repl.tty.type("\x04")
        assert await repl.exit_restored() == 0
        assert "Still open" not in repl.tty.screen.text


def request(*options: str, multiple: bool = False) -> Call:
    question = {"question": "Which colour? 哪个?", "options": options, "multiple": multiple}
    return Call("request_user", question)


@GATEWAY
async def test_a_question_is_answered_by_a_digit_or_by_text(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [
        Reply(calls=[request("red", "蓝色")]),
        Reply(calls=[request("red", "蓝色")]),
        Reply(calls=[request("a", "b", "c", multiple=True)]),
        Reply(text="painted"),
    ]
    async with open_terminal(way, home, environ, script) as repl:
        await repl.send("paint")
        await repl.tty.wait_for("? Which colour? 哪个?", "1 red", "2 蓝色", "[1-2] choose")
        repl.tty.type("2")
        await repl.tty.wait_for("→ 蓝色")
        await repl.tty.wait_for("[1-2] choose")
        repl.tty.type("2 of each, 都要\r")
        await repl.tty.wait_for("→ 2 of each, 都要", "[1-3] select")
        repl.tty.type("1")
        await repl.tty.wait_for("✓ 1 a")
        repl.tty.type("3")
        await repl.tty.wait_for("✓ 3 c", "[enter] confirm 2")
        repl.tty.type("\r")
        await repl.tty.wait_for("→ a; c", "● painted")
        (task,) = await runs_of(repl)
    assert task == "completed"


@PROCESS
@pytest.mark.slow
async def test_an_answer_from_another_client_closes_the_question(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(calls=[TOUCH]), Reply(text="done")]
    async with open_terminal(way, home, environ, script) as repl:
        await repl.send("make it")
        await repl.tty.wait_for(ONCE)
        repl.tty.type("e")
        await repl.tty.wait_for("esc back")
        repl.tty.type("half a reason")
        await repl.tty.wait_for("half a reason")
        (question,) = json.loads((await run(repl, "questions", "--json"))[1])
        code, output = await run(repl, "answer", question["question_id"], "yes")
        assert code == 0, output
        await repl.tty.wait_for("→ yes · answered by", "● done")
        assert is_made(repl)
        assert "half a reason" not in repl.tty.screen.text
        assert ONCE not in repl.tty.screen.text


@GATEWAY
@pytest.mark.slow
async def test_ctrl_c_at_a_question_stops_the_run(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    async with open_terminal(way, home, environ, [Reply(calls=[TOUCH])]) as repl:
        await repl.send("make it")
        await repl.tty.wait_for(ONCE)
        repl.tty.type("draft")
        await repl.tty.wait_for("draft")
        repl.tty.type("\x03")
        await repl.tty.wait_until(lambda: "draft" not in repl.tty.screen.text)
        repl.tty.type("\x03")
        await repl.tty.wait_for("■ stopped")
        assert ONCE not in repl.tty.screen.text
        assert not is_made(repl)
        (task,) = await runs_of(repl)
    assert task == "cancelled"


@pytest.mark.slow
@PROCESS
async def test_a_new_task_runs_while_a_question_is_open(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = Rules(
        [
            Reply(text="it is noon", when=When(last_user="what time")),
            Reply(text="painted", when=When(last_user="paint", results=1)),
            Reply(calls=[request("red", "blue")], when=When(last_user="paint")),
        ]
    )
    async with open_terminal(way, home, environ, script) as repl:
        await repl.send("paint")
        await repl.tty.wait_for("[1-2] choose", "tab new task")
        repl.tty.type("what time is it\t")
        await repl.tty.wait_for("> what time is it", "● it is noon")
        await repl.tty.wait_for("[1-2] choose")
        repl.tty.type("1")
        await repl.tty.wait_for("→ red", "● painted")
        assert await runs_of(repl) == ["completed", "completed"]


@pytest.mark.slow
@GATEWAY
async def test_a_question_stays_open_after_the_terminal_closes(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(calls=[TOUCH]), Reply(text="done")]
    async with open_terminal(way, home, environ, script) as repl:
        await repl.send("make it")
        await repl.tty.wait_for(ONCE)
        repl.tty.type("\x04")
        assert await repl.exit_restored() == 0
        (question,) = re.findall(r"Still open: larkspur answer (\S+) yes", repl.tty.screen.text)
        (session_id,) = re.findall(r"larkspur -r (\S+)", repl.tty.screen.text)
        assert await runs_of(repl) == ["waiting"]
        there = repl.place
        async with start_terminal([LARKSPUR], there.environ, there.folder) as other:
            await other.wait_for("1 open question in another session · /questions")
            other.type("/问题\r")
            await other.wait_for(question[-6:], "touch made")
            other.type("\x04")
            await other.wait_exit()
        async with start_terminal(
            [LARKSPUR, "-r", session_id], there.environ, there.folder
        ) as again:
            await again.wait_for("! run?  touch made", ONCE)
            again.type("好的\r")
            await again.wait_for("→ yes", "● done")
        assert is_made(repl)


@PROCESS
@pytest.mark.slow
async def test_a_question_of_another_session_is_answered_by_a_command(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = Rules(
        [Reply(text="done", when=When(results=1)), Reply(calls=[request("red", "blue")])]
    )
    async with open_terminal(way, home, environ, script) as repl:
        await repl.send("paint")
        await repl.tty.wait_for("[1-2] choose")
        repl.tty.type("/new\r")
        await repl.tty.wait_for("Started a new session.")
        await repl.tty.wait_until(lambda: "[1-2] choose" not in repl.tty.screen.text)
        repl.tty.type("/answer question\r")
        await repl.tty.wait_for("Usage: /answer ID yes|no|TEXT")
        repl.tty.type("/回答 question- green\r")
        await repl.tty.wait_for("? Which colour? 哪个?  → green")
        await until_all(repl, "completed")


async def until_all(repl: ReplProcess, status: str) -> None:
    """Wait until every task has the status."""
    while set(await runs_of(repl)) != {status}:
        pass


@pytest.mark.slow
async def test_the_window_can_shrink_while_a_question_is_open(
    home: Path, environ: dict[str, str]
) -> None:
    command = "printf '%s\\n' " + " ".join(f"'שלום {n} 世界'" for n in range(120)) + "; touch made"
    script = [Reply(calls=[Call("shell", {"command": command})]), Reply(text="done")]
    async with open_terminal("process", home, environ, script) as repl:
        await repl.send("make it")
        await repl.tty.wait_for(ONCE, "… ")
        for columns, rows in ((30, 24), (100, 8), (80, 5), (3, 24)):
            repl.tty.resize(columns, rows)
            await repl.tty.wait_until(frame_drawn(repl.tty))
            assert len(repl.tty.screen.rows) <= rows
        repl.tty.type("y")  # the question is not shown there, so this is a letter
        repl.tty.resize(80, 24)
        # the scrollback buffer may still have the keys of a wider window
        await repl.tty.wait_until(lambda: ONCE in "\n".join(repl.tty.screen.rows))
        assert not is_made(repl)
        repl.tty.type("\r")
        await repl.tty.wait_for("→ yes", "● done")


@pytest.mark.slow
async def test_ascii_glyphs_and_chinese_messages(home: Path, environ: dict[str, str]) -> None:
    hidden = Call("shell", {"command": "echo \u202eevil\u202c; touch made"})
    script = [Reply(calls=[hidden]), Reply(text="done")]
    environ = {**environ, "LANG": "zh_CN.UTF-8", "LC_ALL": "zh_CN.UTF-8", "NO_COLOR": "1"}
    async with open_terminal("process", home, environ, script, "--ascii") as repl:
        await repl.send("做吧")
        await repl.tty.wait_for("echo \\u202eevil\\u202c; touch made", "[y] 允许一次")
        repl.tty.type("n")
        await repl.tty.wait_for("x echo", "-> 拒绝", "* done")
        assert not re.search(rb"\x1b\[[0-9;]*\b[349][0-8]\b", bytes(repl.tty.raw))


@pytest.mark.slow
async def test_a_late_approval_changes_nothing(home: Path, environ: dict[str, str]) -> None:
    script = [Reply(calls=[TOUCH]), Reply(text="done")]
    async with open_terminal("gateway", home, environ, script) as repl:
        await repl.send("make it")
        await repl.tty.wait_for(ONCE)
        (question,) = json.loads((await run(repl, "questions", "--json"))[1])
        repl.tty.process.send_signal(signal.SIGSTOP)
        code, output = await run(repl, "answer", question["question_id"], "no")
        assert code == 0, output
        repl.tty.type("y\r")
        repl.tty.process.send_signal(signal.SIGCONT)
        await repl.tty.wait_for("→ no · answered by", "● done")
        assert not is_made(repl)


@pytest.mark.slow
@GATEWAY
async def test_an_interrupted_run_is_retried_or_given_up(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(text="done", fault=Fault("status", message="Overloaded", times=3))]
    patience = {**environ, "LARKSPUR_LLM__MAX_RETRIES": "0"}
    async with open_terminal(way, home, patience, script) as repl:
        await repl.send("work")
        await repl.tty.wait_for("[y] retry", "[n] give up", "or type what to do differently")
        repl.tty.type("y")
        await repl.tty.wait_for("→ retry")
        await repl.tty.wait_until(lambda: len(repl.place.model.requests) == 2)
        await repl.tty.wait_for("[y] retry")
        await repl.send("use less")
        await repl.tty.wait_for("→ use less")
        await repl.tty.wait_until(lambda: len(repl.place.model.requests) == 3)
        assert "use less" in last_message(repl)
        await repl.tty.wait_for("[n] give up")
        repl.tty.type("n")
        await repl.tty.wait_for("→ given up", "Given up by")
        assert await runs_of(repl) == ["failed"]
