"""Hooks through a real gateway: real processes, a real server, a scripted model."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.errors import MessageRefused
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.rules import RuleError
from internal.agent.domain.principals import LOCAL_OWNER
from tests.support.agent_app import Core, open_agent, plan, sound
from tests.support.anthropic_server import Call, Reply, Rules, ScriptedAnthropic, When
from tests.support.gateway_process import running_gateway
from tests.support.hook_server import HookServer
from tests.support.processes import wait_for_end
from tests.support.sandboxes import sandbox_params

TOUCH = Call("shell", {"command": "touch made"})
SCRIPT = [Reply(calls=[plan()]), Reply(calls=[TOUCH]), Reply(text="ok")]


def hook(code: str, event: str = "before_tool", **more: Any) -> dict[str, Any]:
    """Return a hook that runs Python code, with its input in `given`."""
    begin = "import json, os, sys, time; given = json.load(sys.stdin)\n"
    command = [sys.executable, "-c", begin + code]
    return {"event": event, "name": "guard", "command": command, **more}


def says(**output: Any) -> str:
    return f"print({json.dumps(json.dumps({'hookSpecificOutput': output}))})"


def settings(*hooks: dict[str, Any], **more: str) -> dict[str, str]:
    return {"LARKSPUR_HOOKS": json.dumps(hooks), **more}


def named(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [each["payload"] for each in events if each["event"] == f"workflow.{name}"]


def made(home: Path, session_id: str) -> bool:
    return (home / "workspaces" / session_id / "made").exists()


def last_result(here: Core) -> str:
    return json.dumps(here.model.requests[-1]["messages"][-1]["content"])


async def refused(home: Path, environ: dict[str, str]) -> str:
    """Run the script; return why the call was refused, which did not start."""
    async with open_agent(home, SCRIPT, environ) as here:
        task = await here.submit("touch it")
        events = await here.end_of(task)
        sound(events)
        assert not named(events, "tool.started")
        assert not made(home, task.session_id)
        [completed] = named(events, "tool.completed")
        assert completed["metadata"]["denied"] is True
        assert completed["error"] in last_result(here)
        return str(completed["error"])


async def test_a_refused_call_does_not_start_and_says_why(home: Path) -> None:
    code = "print(given['tool_input']['command'], file=sys.stderr); sys.exit(2)"
    reason = await refused(home, settings(hook(code, match="shell(touch *)")))
    assert reason == "refused by hook guard: touch made"


async def test_a_hook_for_other_calls_is_not_asked(home: Path) -> None:
    hooks = hook("sys.exit(2)", match="shell(rm *)"), hook("sys.exit(2)", match="write_file")
    async with open_agent(home, SCRIPT, settings(*hooks)) as here:
        task = await here.submit("touch it")
        sound(await here.end_of(task))
        assert made(home, task.session_id)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("time.sleep(600)", "did not end within 1 s"),
        ("print('x' * 10_000_000)", "printed more than 1000000 bytes"),
        ("os.kill(os.getpid(), 9)", "was killed by SIGKILL"),
        ("print('{\"decision\": 1}')", "answered JSON that cannot be used"),
    ],
)
@pytest.mark.first_rows(2)
async def test_a_failed_hook_refuses(home: Path, code: str, sentence: str) -> None:
    seconds = 1 if "sleep" in code else 30
    reason = await refused(home, settings(hook(code, timeout_seconds=seconds)))
    assert reason.startswith(f"Not run: the hook guard {sentence}")


@pytest.mark.parametrize("sandbox", sandbox_params("bubblewrap", "native"))
@pytest.mark.parametrize("exists", [True, False])
async def test_an_agent_does_not_replace_the_program_of_a_hook(
    home: Path, tmp_path: Path, sandbox: str, exists: bool
) -> None:
    workspace, ran = tmp_path / "project", tmp_path / "ran"
    program, rules = workspace / "hooks" / "a.sh", tmp_path / "rules.json"
    program.parent.mkdir(parents=True)
    rules.touch()
    if exists:
        program.write_text("#!/bin/sh\ncat\n")
        program.chmod(0o755)
    guard = {"event": "after_tool", "command": [str(program), str(rules)], "name": "guard"}
    change = f"printf '#!/bin/sh\\ntouch {ran}\\n' > new; chmod +x new; cp -p new hooks/a.sh"
    swap = (
        "mv hooks/a.sh hooks/b; cp -p new hooks/a.sh; mv hooks b; mkdir hooks; cp -p new hooks/a.sh"
    )
    script = [
        Reply(calls=[Call("shell", {"command": f"{change}; {swap}; true"})]),
        Reply(calls=[Call("shell", {"command": "true"})]),
        Reply(text="ok"),
    ]
    environ = settings(guard, LARKSPUR_SANDBOX__PROVIDER=sandbox, LARKSPUR_AGENT__GATES="off")
    async with open_agent(home, script, environ) as here:
        task = await here.submit("go", workspace=str(workspace), permission_mode=Mode.ALL)
        events = await here.end_of(task)
        problems = [each["error"] for each in named(events, "diagnostic.error")]
    assert not ran.exists()
    if sandbox == "native" or not exists:
        assert "the hook guard does not run" in problems[-1]


async def test_a_failed_hook_may_be_ignored_and_is_reported(home: Path) -> None:
    async with open_agent(
        home, SCRIPT, settings(hook("sys.exit(1)", on_failure="continue"))
    ) as here:
        task = await here.submit("touch it")
        events = await here.end_of(task)
        assert made(home, task.session_id)
        [problem] = named(events, "diagnostic.error")
        assert (problem["phase"], problem["error"]) == (
            "hook",
            "the hook guard ended with exit code 1.",
        )


async def test_a_hook_turns_a_pass_into_a_question_that_survives_a_restart(home: Path) -> None:
    asked = hook(says(permissionDecision="ask", permissionDecisionReason="Friday?"))
    async with open_agent(home, SCRIPT[:2], settings(asked)) as here:
        task = await here.submit("touch it")
        question = await here.asked(task)
        [call] = question["calls"]
        assert call["reason"] == "The hook guard asks: Friday?"
        assert not call["rules"]
        assert not made(home, task.session_id)
    async with open_agent(home, SCRIPT[2:], settings(hook("sys.exit(2)"))) as here:
        await here.answer(question["question_id"])
        sound(await here.end_of(task))  # the answer counts: the hook is not asked again
        assert made(home, task.session_id)


async def test_where_nobody_can_be_asked_a_question_of_a_hook_is_a_no(home: Path) -> None:
    async with open_agent(home, SCRIPT, settings(hook(says(permissionDecision="ask")))) as here:
        task = await here.submit("touch it", people=False)
        [completed] = named(await here.end_of(task), "tool.completed")
        assert "Nobody can be asked" in completed["error"]
        assert not made(home, task.session_id)


async def test_changed_arguments_run_and_are_shown(home: Path) -> None:
    changed = hook(says(permissionDecision="allow", updatedInput={"command": "touch other"}))
    async with open_agent(home, SCRIPT, settings(changed)) as here:
        task = await here.submit("touch it")
        events = await here.end_of(task)
        [started] = named(events, "tool.started")
        assert started["arguments"] == {"command": "touch other"}
        assert (home / "workspaces" / task.session_id / "other").exists()
        assert not made(home, task.session_id)
        [note] = named(events, "diagnostic.error")
        assert note["error"] == "the hook guard changed the arguments of shell"
        sent = json.dumps(here.model.requests[-1]["messages"])
        assert "touch other" in sent
        assert "touch made" not in sent


async def test_changed_arguments_are_judged_again(home: Path) -> None:
    changed = hook(says(updatedInput={"command": "rm made"}))
    environ = settings(changed, LARKSPUR_TOOLS__DENY='["shell(rm *)"]')
    assert "is denied by the rule shell(rm *)" in await refused(home, environ)


async def test_a_hook_cannot_allow_what_the_rules_deny(home: Path) -> None:
    changed = hook(says(permissionDecision="allow", updatedInput={"command": "true"}))
    environ = settings(changed, LARKSPUR_TOOLS__DENY='["shell(touch *)"]')
    assert "is denied by the rule shell(touch *)" in await refused(home, environ)


async def test_a_hook_cannot_answer_a_question_of_the_rules(home: Path) -> None:
    changed = hook(says(permissionDecision="allow", updatedInput={"command": "echo hi"}))
    environ = settings(changed, LARKSPUR_TOOLS__ALLOW='["shell(echo *)"]')
    async with open_agent(home, SCRIPT, environ) as here:
        task = await here.submit("touch it", permission_mode=Mode.ASK)
        [call] = (await here.asked(task))["calls"]
        assert call["what"] == "echo hi"
        assert call["reason"].startswith("Before a hook changed the call: ")


async def test_hooks_are_asked_in_order_until_one_refuses(home: Path) -> None:
    first = hook(says(updatedInput={"command": "touch second"}), name="first")
    second = hook("print(given['tool_input'], file=sys.stderr); sys.exit(2)", name="second")
    third = hook("open('third', 'w')", name="third")
    reason = await refused(home, settings(first, second, third))
    assert reason == "refused by hook second: {'command': 'touch second'}"
    assert not (home / "third").exists()


async def test_a_hook_over_http_is_signed_and_refuses(home: Path) -> None:
    async with HookServer((200, b'{"decision": "block", "reason": "not here"}')) as server:
        over_http = {"event": "before_tool", "name": "far", "url": server.url, "secret": "s3cret"}
        assert await refused(home, settings(over_http)) == "refused by hook far: not here"
        [posted] = server.requests
        assert {"webhook-id", "webhook-timestamp"} <= posted.headers.keys()
        assert posted.headers["webhook-signature"].startswith("v1,")
        given = json.loads(posted.body)
        assert given["hook_event_name"] == "before_tool"
        assert (given["tool_name"], given["tool_input"]) == ("shell", TOUCH.input)
        assert (given["channel"], given["person"]) == ("web", "local")


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((200, b"<html>Welcome</html>"), "answered something else than one JSON object"),
        ((500, b"{}"), "answered with the status 500"),
        ((302, b"{}"), "answered with the status 302"),
        ((200, b" " * 2_000_000), "answered more than 1000000 bytes"),
        ((0, b""), "did not answer within 1 s"),
    ],
)
@pytest.mark.first_rows(2)
async def test_a_broken_answer_over_http_refuses(
    home: Path, answer: tuple[int, bytes], sentence: str
) -> None:
    async with HookServer(answer) as server:
        over_http: dict[str, Any] = {"event": "before_tool", "name": "far", "url": server.url}
        over_http |= {} if answer[0] else {"timeout_seconds": 1}
        assert f"the hook far {sentence}" in await refused(home, settings(over_http))


async def test_a_hook_after_a_call_adds_a_note_for_the_model(home: Path) -> None:
    code = "print('failed: ' + str(given['tool_response']['failed']), file=sys.stderr); sys.exit(2)"
    async with open_agent(home, SCRIPT, settings(hook(code, "after_tool"))) as here:
        task = await here.submit("touch it")
        sound(await here.end_of(task))
        assert "[the hook guard: failed: False]" in last_result(here)


async def test_observers_see_the_life_of_a_run_and_change_nothing(home: Path) -> None:
    code = "open('seen', 'a').write(json.dumps(given) + '\\n'); sys.exit(2)"
    events = ("run_started", "question_asked", "run_ended")
    environ = settings(*(hook(code, event) for event in events))
    async with open_agent(home, SCRIPT, environ) as here:
        task = await here.submit("touch it", permission_mode=Mode.ASK)
        await here.answer((await here.asked(task))["question_id"])
        sound(await here.end_of(task))
    seen = [json.loads(line) for line in (home / "seen").read_text().splitlines()]
    assert [each["hook_event_name"] for each in seen] == list(events)
    assert {each["run_id"] for each in seen} == {task.run_id}
    assert seen[0]["prompt"] == "touch it"
    assert seen[1]["question"]["kind"] == "approval"
    assert seen[2]["result"]["stop_reason"] == "final_answer"


async def test_a_refused_message_becomes_no_task(home: Path) -> None:
    code = "if 'secret' in given['prompt']: print('no secrets', file=sys.stderr); sys.exit(2)"
    environ = settings(hook(code, "message_received"))
    async with open_agent(home, [Reply(text="hi")], environ) as here:
        with pytest.raises(MessageRefused, match="Not accepted: refused by hook guard: no secrets"):
            await here.submit("a secret")
        task = await here.submit("hello")
        sound(await here.end_of(task))
        assert len(here.model.requests) == 1


async def test_no_tool_changes_the_script_of_a_hook(home: Path, work: Path) -> None:
    script = work / "check.py"
    script.write_text("import sys; sys.exit('write_file' in sys.stdin.read() and 2)")
    guard = {"event": "after_tool", "command": ["python3", str(script)]}
    write = Call("write_file", {"path": "check.py", "content": "print('{}')"})
    replies = [Reply(calls=[plan()]), Reply(calls=[write]), Reply(text="ok")]
    async with open_agent(home, replies, settings(guard)) as here:
        task = await here.submit("change it", workspace=str(work))
        [completed] = named(await here.end_of(task), "tool.completed")
        assert "check.py" in completed["error"]
        assert "sys.exit" in script.read_text()


async def test_a_rule_that_cannot_be_used_is_explained_at_start(home: Path) -> None:
    unusable = hook("", match="web_fetch(not a host)")
    with pytest.raises(RuleError, match="write a host name"):
        async with open_agent(home, SCRIPT, settings(unusable)):
            pass


HANGS = """
open('started', 'w').write(str(os.getpid()))
time.sleep(0 if os.path.exists('go') else 600)
"""


async def test_a_stop_ends_a_hook(home: Path) -> None:
    os.mkfifo(home / "started")
    async with open_agent(home, SCRIPT, settings(hook(HANGS, timeout_seconds=600))) as here:
        task = await here.submit("touch it")
        pid = int(await asyncio.to_thread((home / "started").read_text))
        await here.services.gateway.stop(task.task_id, LOCAL_OWNER, "web")
        events = await here.end_of(task)
        sound(events)
        assert events[-1]["event"] == "workflow.result.cancelled"
        await wait_for_end(pid)


@pytest.mark.slow
async def test_after_kill_9_a_hook_is_asked_again(home: Path, environ: dict[str, str]) -> None:
    os.mkfifo(home / "started")
    rules = Rules(
        [
            Reply(calls=[plan()], when=When(all_results=0)),
            Reply(calls=[TOUCH], when=When(all_results=1)),
            Reply(text="ok", when=When(all_results=2)),
        ]
    )
    async with ScriptedAnthropic(rules) as model:
        given = {
            **environ,
            **settings(hook(HANGS, timeout_seconds=600)),
            "ANTHROPIC_BASE_URL": model.base_url,
            "ANTHROPIC_API_KEY": "key-for-tests",
            "LARKSPUR_LLM__MODEL": "claude-x",
            "LARKSPUR_TOOLS__ALLOW": '["shell(touch *)"]',
        }
        async with running_gateway(given, home, provider="anthropic") as gateway:
            task = (await gateway.client.post("/api/tasks", {"task": "touch it"})).json()
            first = int(await asyncio.to_thread((home / "started").read_text))
            gateway.process.kill()
            await gateway.process.wait()
        os.killpg(first, signal.SIGKILL)  # nothing is left that could do it
        (home / "go").touch()
        async with running_gateway(given, home, provider="anthropic") as gateway:
            second = int(await asyncio.to_thread((home / "started").read_text))
            assert second != first
            async with gateway.client.stream(f"session_id={task['session_id']}") as stream:
                envelopes = [each.json() for each in await stream.until("workflow.result.final")]
        assert envelopes[-1]["payload"]["final_answer"] == "ok"
        assert made(home, task["session_id"])
