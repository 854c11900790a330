"""Usage of a run with subtasks: the same figures on the page, in `-p` and in the terminal."""

import json
import subprocess
from typing import Any

import pytest
from playwright.sync_api import expect

from internal.i18n.quantities import format_duration
from tests.browser.gateway import LARKSPUR
from tests.support.anthropic_server import Call, Reply, When
from tests.support.page_in_browser import Open, Serve

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(180)]


def used(count: int) -> dict[str, int]:
    return {"input_tokens": count, "output_tokens": 100}


def replies() -> list[Reply]:
    """Return five replies for a run with two subtasks, one of them with a subtask of its own."""
    tasks = [{"instruction": "dig"}, {"instruction": "lead", "agent_profile": "lead"}]
    below = [{"instruction": "below"}]
    return [
        Reply(
            calls=[Call("subagent", {"tasks": tasks})],
            usage=used(10_000),
            when=When(last_user="start", results=0),
        ),
        Reply("dug", usage=used(2_000), when=When(last_user="dig")),
        Reply(
            calls=[Call("subagent", {"tasks": below})],
            usage=used(300),
            when=When(last_user="lead", results=0),
        ),
        Reply("deep", usage=used(40), when=When(last_user="below")),
        Reply("led", usage=used(5), when=When(last_user="lead", results=1)),
        Reply("all is done", usage=used(55), when=When(last_user="start", results=1)),
    ]


def test_all_channels_show_the_same_totals_of_a_run_with_nested_subtasks(
    serve: Serve, script: Any, enter: Open
) -> None:
    gateway = serve(script(replies()), AGENT__GATES="off")
    profiles = gateway.home / "profiles"
    profiles.mkdir(exist_ok=True)
    (profiles / "lead.yaml").write_text("extends: default\ndelegates: true\n", encoding="utf-8")
    command = [str(LARKSPUR), "-p", "start", "--output-format", "json"]
    done = subprocess.run(command, env={**gateway.environ}, capture_output=True, check=True)
    result = json.loads(done.stdout)
    # a million tokens cost 3 and 15 dollars
    assert (result["usage"]["input_tokens"], result["usage"]["output_tokens"]) == (12_400, 600)
    assert result["cost"] == pytest.approx(0.0462)

    task = gateway.ask("GET", f"/api/tasks/{result['task_id']}")
    assert (task["run"]["usage"], task["run"]["cost"]) == (result["usage"], result["cost"])
    assert task["total_cost"] == result["cost"]
    listed = subprocess.run(
        [LARKSPUR, "tasks", "--tree", "--json"],
        env={**gateway.environ},
        capture_output=True,
        check=True,
    )
    [tree] = json.loads(listed.stdout)
    assert tree["total_cost"] == result["cost"]

    page = enter(gateway, viewport={"width": 1400, "height": 800})
    page.goto(f"{gateway.url}/sessions/{result['session_id']}")
    took = format_duration(result["duration_ms"] / 1_000)
    thread, panel = page.get_by_test_id("thread"), page.get_by_role("tabpanel")
    expect(thread.get_by_text(f"{took} · 12.4k in 600 out · $0.05")).to_be_visible()
    expect(panel.get_by_role("definition")).to_have_text(["12.4k", "600", "$0.05"])
    page.goto(f"{gateway.url}/tasks")
    row = page.get_by_role("region", name="Done").get_by_role("link").last
    expect(row).to_contain_text("start")
    expect(row).to_contain_text(f"$0.05 · {took}")
    page.goto(f"{gateway.url}/settings/usage")
    by_session = page.get_by_role("region", name="By session")
    expect(by_session.get_by_role("row").nth(1)).to_contain_text("12.4k")
    expect(by_session.get_by_role("row").nth(1)).to_contain_text("$0.05")
