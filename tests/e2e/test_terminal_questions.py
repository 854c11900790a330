"""Questions at the prompt of a real terminal: with a gateway, and in its own process."""

import json
import re
import signal
from pathlib import Path

from internal.channels.cli.render.theme import UNICODE
from tests.e2e.test_cli_oneshot import BOTH_WAYS, LARKSPUR
from tests.e2e.test_terminal_session import Here, session, settled
from tests.support.scripted_model import Call, Reply, Rules, When
from tests.support.terminal import seat

TOUCH = Call("shell", {"command": "touch made; echo 完成"})
ONCE = "[y] once"
YOU = UNICODE.prompt


async def run(here: Here, *argv: str) -> tuple[int | None, str]:
    """Run another command of the same person."""
    process = await here.there.start(*argv)
    out, err = await process.communicate()
    return process.returncode, (out + err).decode()


def made(here: Here) -> bool:
    return (here.there.folder / "made").exists()


def heard(here: Here) -> str:
    """What the model was told last."""
    return json.dumps(here.there.model.requests[-1]["messages"][-1], ensure_ascii=False)


async def runs_of(here: Here) -> list[str]:
    code, told = await run(here, "tasks", "--json")
    assert code == 0
    return [one["status"] for one in json.loads(told)]


@BOTH_WAYS
async def test_a_yes_is_given_to_the_very_command(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(calls=[TOUCH]), Reply(text="done")]
    async with session(way, home, environ, script) as here:
        await here.ask("make it")
        await here.at.sees("! allow?  touch made; echo 完成", ONCE, "! waiting for you")
        assert not made(here)
        here.at.type("y")
        await here.at.sees("touch made; echo 完成  → yes", "✓ shell", "● done")
        assert made(here)
        assert ONCE not in here.at.glass.text
        assert "answered by" not in here.at.glass.text
        (task,) = await runs_of(here)
    assert task == "completed"


@BOTH_WAYS
async def test_a_no_because_reaches_the_model(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(calls=[TOUCH]), Reply(calls=[TOUCH]), Reply(text="then not")]
    async with session(way, home, environ, script) as here:
        await here.ask("make it")
        await here.at.sees(ONCE)
        here.at.type("n")
        await here.at.sees("→ no", ONCE)
        await here.at.until(lambda: len(here.there.model.requests) == 2)
        here.at.type("e")
        await here.at.sees("esc back")
        here.at.type("请用 Python\r")
        await here.at.sees("→ no: 请用 Python", "● then not")
        assert "请用 Python" in heard(here)
        assert not made(here)


async def test_a_yes_for_this_session_asks_no_more(home: Path, environ: dict[str, str]) -> None:
    script = [*[Reply(calls=[TOUCH])] * 2, Reply(text="done")]
    async with session("process", home, environ, script) as here:
        await here.ask("make it twice")
        await here.at.sees("[a] this session")
        here.at.type("a")
        await here.at.sees("→ yes, for this session", "● done")
        assert here.at.glass.text.count("allow?") == 0
        assert len(here.there.model.requests) == 3


@BOTH_WAYS
async def test_a_rule_is_written_as_the_person_wants_it(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    other = Call("shell", {"command": "touch other"})
    touch = Call("shell", {"command": "touch made"})
    script = [Reply(calls=[touch]), Reply(calls=[other]), Reply(text="done")]
    async with session(way, home, environ, script) as here:
        await here.ask("make both")
        await here.at.sees("[p] write a rule")
        here.at.type("p")
        await here.at.sees(f"{YOU} shell(touch made)", "one per line")
        here.at.type("\x01\x0bshell(\r")
        await here.at.sees("✕ ", f"{YOU} shell(")  # no rule: nothing is lost, nothing runs
        assert not made(here)
        here.at.type("\x01\x0bshell(touch *)\r")
        await here.at.sees("→ yes, allowed by a rule from now on", "● done")
        assert made(here)
        assert (here.there.folder / "other").exists()
        here.at.type("/permissions\r")
        await here.at.sees("allow shell(touch *)")
        (number,) = re.findall(r"^(\d+) .*allow shell\(touch", here.at.glass.text, re.MULTILINE)
        here.at.type(f"/permissions remove {number}\r")
        await here.at.sees(f"Removed rule {number}.")


async def test_several_calls_are_marked_one_by_one(home: Path, environ: dict[str, str]) -> None:
    calls = [Call("shell", {"command": f"touch {name}"}) for name in ("one", "two", "three")]
    script = [Reply(calls=calls), Reply(text="done")]
    async with session("process", home, environ, script) as here:
        await here.ask("make three")
        await here.at.sees("! allow 3 calls?", "1 touch one", "3 touch three", "[n] none")
        here.at.type("1")
        await here.at.sees("✓ 1 touch one", "[enter] confirm 1")
        here.at.type("2")
        await here.at.sees("✓ 2 touch two", "[enter] confirm 2")
        here.at.type("1")
        await here.at.sees("  1 touch one", "[enter] confirm 1")
        here.at.type("3")
        await here.at.sees("[enter] confirm 2")
        here.at.type("\r")
        await here.at.sees("→ yes to 2 of 3", "● done")
        there = {path.name for path in here.there.folder.iterdir()}
    assert there == {"two", "three"}


async def test_a_change_is_shown_before_it_is_made(home: Path, environ: dict[str, str]) -> None:
    old = "".join(f"line {n}\n" for n in range(60))
    new = "".join(f"LINE {n} 行\n" for n in range(60))
    edit = Call("edit_file", {"path": "a.txt", "old_string": old, "new_string": new})
    script = [Reply(calls=[Call("read_file", {"path": "a.txt"})]), Reply(calls=[edit])]
    size = (80, 40)
    script.append(Reply(text="changed"))
    async with session("process", home, environ, script, size=size) as here:
        (here.there.folder / "a.txt").write_text(old)
        await here.ask("shout")
        await here.at.sees("! allow?  edit_file  a.txt", "-line 0", ONCE)
        (more,) = re.findall(r"… (\d+) more · Ctrl\+O shows all", here.at.glass.text)
        assert int(more) > 90
        assert "LINE 59" not in here.at.glass.text
        here.at.type("\x0f")
        await here.at.sees("+LINE 59 行", "larkspur answer question-")
        assert (here.there.folder / "a.txt").read_text() == old
        here.at.type("y")
        await here.at.sees("● changed")
        assert (here.there.folder / "a.txt").read_text() == new


PLAN = Call(
    "plan", {"goal": "一份报告", "steps": ["collect", "write 写作"], "complexity": "complex"}
)


def planned(*after: Reply) -> list[Reply]:
    return [Reply(calls=[PLAN]), *after]


@BOTH_WAYS
async def test_a_plan_waits_and_is_edited_in_the_box(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    async with session(way, home, environ, planned(Reply(text="done"))) as here:
        here.at.type("/计划 on\r")
        await here.at.sees("you approve every plan")
        await here.ask("report")
        await here.at.sees("▣ approve plan?  一份报告", "1. collect", "2. write 写作", "[e] edit")
        here.at.type("e")
        await here.at.sees(f"{YOU} 1. collect", "the plan's steps, one per line")
        here.at.type("\n3. mail it\r")
        await here.at.sees("→ edited", "collect → write 写作 → mail it", "3. mail it")
        await here.at.sees("[y] approve")  # what was changed is shown once more
        here.at.type("y")
        await here.at.sees("一份报告  → yes", "● done")
        assert "mail it" in heard(here)


async def test_words_on_a_plan_are_feedback_and_it_comes_back(
    home: Path, environ: dict[str, str]
) -> None:
    again = Call("plan", {"goal": "shorter", "steps": ["write"], "complexity": "complex"})
    script = planned(Reply(calls=[again]), Reply(text="done"))
    async with session("process", home, environ, script, "--plan-review", "always") as here:
        await here.ask("report")
        await here.at.sees("[y] approve")
        here.at.type("no, shorter please\r")  # it begins with n, and is not a no
        await here.at.sees("→ no, shorter please", "▣ approve plan?  shorter")
        assert "plan_feedback" in heard(here)
        await here.at.sees("[y] approve")
        here.at.type("y")
        await here.at.sees("shorter  → yes", "● done")


async def test_a_rejected_plan_ends_the_run(home: Path, environ: dict[str, str]) -> None:
    script = planned(Reply(text="never said"))
    async with session("process", home, environ, script, "--plan-review", "always") as here:
        await here.ask("report")
        await here.at.sees("[n] reject")
        here.at.type("n")
        await here.at.sees("✕ 一份报告  → no", "■ stopped")
        assert len(here.there.model.requests) == 1
        here.at.type("\x04")
        assert await here.left_sane() == 0
        assert "Still open" not in here.at.glass.text


def request(*options: str, multiple: bool = False) -> Call:
    asked = {"question": "Which colour? 哪个?", "options": options, "multiple": multiple}
    return Call("request_user", asked)


@BOTH_WAYS
async def test_a_question_is_answered_by_a_digit_or_by_words(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [
        Reply(calls=[request("red", "蓝色")]),
        Reply(calls=[request("red", "蓝色")]),
        Reply(calls=[request("a", "b", "c", multiple=True)]),
        Reply(text="painted"),
    ]
    async with session(way, home, environ, script) as here:
        await here.ask("paint")
        await here.at.sees("? Which colour? 哪个?", "1 red", "2 蓝色", "[1-2] choose")
        here.at.type("2")
        await here.at.sees("→ 蓝色")
        await here.at.sees("[1-2] choose")
        here.at.type("2 of each, 都要\r")
        await here.at.sees("→ 2 of each, 都要", "[1-3] select")
        here.at.type("1")
        await here.at.sees("✓ 1 a")
        here.at.type("3")
        await here.at.sees("✓ 3 c", "[enter] confirm 2")
        here.at.type("\r")
        await here.at.sees("→ a; c", "● painted")
        (task,) = await runs_of(here)
    assert task == "completed"


@BOTH_WAYS
async def test_an_answer_from_elsewhere_takes_the_question_away(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(calls=[TOUCH]), Reply(text="done")]
    async with session(way, home, environ, script) as here:
        await here.ask("make it")
        await here.at.sees(ONCE)
        here.at.type("e")
        await here.at.sees("esc back")
        here.at.type("half a reason")
        await here.at.sees("half a reason")
        (asked,) = json.loads((await run(here, "questions", "--json"))[1])
        code, told = await run(here, "answer", asked["question_id"], "yes")
        assert code == 0, told
        await here.at.sees("→ yes · answered by", "● done")
        assert made(here)
        assert "half a reason" not in here.at.glass.text
        assert ONCE not in here.at.glass.text


@BOTH_WAYS
async def test_ctrl_c_at_a_question_stops_the_run(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    async with session(way, home, environ, [Reply(calls=[TOUCH])]) as here:
        await here.ask("make it")
        await here.at.sees(ONCE)
        here.at.type("draft")
        await here.at.sees("draft")
        here.at.type("\x03")
        await here.at.until(lambda: "draft" not in here.at.glass.text)
        here.at.type("\x03")
        await here.at.sees("■ stopped")
        assert ONCE not in here.at.glass.text
        assert not made(here)
        (task,) = await runs_of(here)
    assert task == "cancelled"


@BOTH_WAYS
async def test_what_waits_does_not_keep_the_person_waiting(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = Rules(
        [
            Reply(text="it is noon", when=When(last_user="what time")),
            Reply(text="painted", when=When(last_user="paint", results=1)),
            Reply(calls=[request("red", "blue")], when=When(last_user="paint")),
        ]
    )
    async with session(way, home, environ, script) as here:
        await here.ask("paint")
        await here.at.sees("[1-2] choose", "tab new task")
        here.at.type("what time is it\t")
        await here.at.sees("> what time is it", "● it is noon")
        await here.at.sees("[1-2] choose")
        here.at.type("1")
        await here.at.sees("→ red", "● painted")
        assert await runs_of(here) == ["completed", "completed"]


@BOTH_WAYS
async def test_a_question_outlives_its_terminal(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(calls=[TOUCH]), Reply(text="done")]
    async with session(way, home, environ, script) as here:
        await here.ask("make it")
        await here.at.sees(ONCE)
        here.at.type("\x04")
        assert await here.left_sane() == 0
        (question,) = re.findall(r"Still open: larkspur answer (\S+) yes", here.at.glass.text)
        (session_id,) = re.findall(r"larkspur -r (\S+)", here.at.glass.text)
        assert await runs_of(here) == ["waiting"]
        there = here.there
        async with seat([LARKSPUR], there.environ, there.folder) as other:
            await other.sees("1 open question in another session · /questions")
            other.type("/问题\r")
            await other.sees(question, "touch made")
            other.type("\x04")
            await other.end()
        async with seat([LARKSPUR, "-r", session_id], there.environ, there.folder) as again:
            await again.sees("! allow?  touch made", ONCE)
            again.type("好的\r")
            await again.sees("→ yes", "● done")
        assert made(here)


@BOTH_WAYS
async def test_a_question_of_another_session_is_answered_by_a_command(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = Rules(
        [Reply(text="done", when=When(results=1)), Reply(calls=[request("red", "blue")])]
    )
    async with session(way, home, environ, script) as here:
        await here.ask("paint")
        await here.at.sees("[1-2] choose")
        here.at.type("/new\r")
        await here.at.sees("Started a new session.")
        await here.at.until(lambda: "[1-2] choose" not in here.at.glass.text)
        here.at.type("/answer question\r")
        await here.at.sees("Usage: /answer ID yes|no|TEXT")
        here.at.type("/回答 question- green\r")
        await here.at.sees("? Which colour? 哪个?  → green")
        await until_all(here, "completed")


async def until_all(here: Here, status: str) -> None:
    """Wait until every task is there."""
    while set(await runs_of(here)) != {status}:
        pass


async def test_the_window_may_shrink_under_a_question(home: Path, environ: dict[str, str]) -> None:
    command = "printf '%s\\n' " + " ".join(f"'שלום {n} 世界'" for n in range(120)) + "; touch made"
    script = [Reply(calls=[Call("shell", {"command": command})]), Reply(text="done")]
    async with session("process", home, environ, script) as here:
        await here.ask("make it")
        await here.at.sees(ONCE, "… ")
        for columns, rows in ((30, 24), (100, 8), (80, 5), (3, 24)):
            here.at.resize(columns, rows)
            await here.at.until(settled(here.at))
            assert len(here.at.glass.rows) <= rows
        here.at.type("y")  # not to be seen whole there: it stays a letter
        here.at.resize(80, 24)
        await here.at.sees(ONCE)
        assert not made(here)
        here.at.type("\r")
        await here.at.sees("→ yes", "● done")


async def test_plain_signs_and_chinese_words(home: Path, environ: dict[str, str]) -> None:
    hidden = Call("shell", {"command": "echo \u202eevil\u202c; touch made"})
    script = [Reply(calls=[hidden]), Reply(text="done")]
    environ = {**environ, "LANG": "zh_CN.UTF-8", "LC_ALL": "zh_CN.UTF-8", "NO_COLOR": "1"}
    async with session("process", home, environ, script, "--ascii") as here:
        await here.ask("做吧")
        await here.at.sees("echo \\u202eevil\\u202c; touch made", "[y] 允许一次")
        here.at.type("n")
        await here.at.sees("x echo", "-> 拒绝", "* done")
        assert not re.search(rb"\x1b\[[0-9;]*\b[349][0-8]\b", bytes(here.at.raw))


async def test_a_yes_that_comes_too_late_changes_nothing(
    home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(calls=[TOUCH]), Reply(text="done")]
    async with session("gateway", home, environ, script) as here:
        await here.ask("make it")
        await here.at.sees(ONCE)
        (asked,) = json.loads((await run(here, "questions", "--json"))[1])
        here.at.process.send_signal(signal.SIGSTOP)
        code, told = await run(here, "answer", asked["question_id"], "no")
        assert code == 0, told
        here.at.type("y\r")
        here.at.process.send_signal(signal.SIGCONT)
        await here.at.sees("→ no · answered by", "● done")
        assert not made(here)
