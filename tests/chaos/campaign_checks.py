"""Invariants after a campaign, whenever the gateway was killed."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tests.chaos import invariants
from tests.chaos.campaign import Campaign
from tests.chaos.campaign_model import final
from tests.chaos.scenario import list_events, list_messages, read_replay

Task = Mapping[str, Any]


async def check_campaign(campaign: Campaign) -> None:
    """Check every invariant over the responses of the HTTP API."""
    gateway = campaign.gateway
    listed = await campaign.tasks()
    tasks = {each["task_id"]: await gateway.get(f"/api/tasks/{each['task_id']}") for each in listed}
    sessions = {task["session_id"] for task in tasks.values()}
    all_events: list[dict[str, Any]] = []
    for session_id in sorted(sessions):
        events = await list_events(gateway, session_id)
        for run in invariants.group_by_run(events).values():
            invariants.check_run(run)
        all_events += events
        if session_id in campaign.frames:
            replay = await read_replay(gateway, f"session_id={session_id}")
            invariants.check_frames(campaign.frames[session_id], replay)
            assert [frame.json() for frame in replay if frame.id] == events
    invariants.check_ledger(all_events, gateway.workspace / "ledger.txt")
    check_tasks(campaign, tasks)
    for session_id in campaign.sessions:
        own = [task for task in tasks.values() if task["session_id"] == session_id]
        messages = await list_messages(gateway, session_id)
        check_steering(campaign, own, messages)
        check_results(messages)
        check_memory(campaign, own)
    await check_questions(campaign, all_events)


def check_tasks(campaign: Campaign, tasks: Mapping[str, Task]) -> None:
    """Each acknowledged task ended once; only a stopped one was not completed; none is a ghost."""
    acknowledged = campaign.acknowledged
    for name, submitted in acknowledged.tasks.items():
        task = tasks[submitted["task_id"]]
        expected = {"completed"}
        if task["task_id"] in acknowledged.stopped:
            expected = {"cancelled"}
        elif task["task_id"] in campaign.requested_stops:
            expected.add("cancelled")
        assert task["status"] in expected, (name, task)
        assert task["run"]["status"] == task["status"], (name, task)
        if task["status"] == "completed":
            assert task["run"]["answer"] == final(name).text, (name, task)
    known = {each["task_id"] for each in acknowledged.tasks.values()}
    known |= {each["task_id"] for each in acknowledged.steering.values()}
    ghosts = [
        task
        for task in tasks.values()
        if task["task_id"] not in known and task["session_id"] in campaign.sessions
    ]
    # steering that came too late for its run is the next task of the session
    texts = set(acknowledged.steering)
    assert all(task["task"] in texts for task in ghosts), ghosts
    for task in tasks.values():
        if task["session_id"] not in campaign.sessions:  # a terminal may have been killed
            assert task["stop_reason"] in {"final_answer", "interrupted", "user_stop"}, task


def check_steering(
    campaign: Campaign, tasks: Sequence[Task], messages: Sequence[Mapping[str, Any]]
) -> None:
    """Acknowledged steering reached the model once, unless the run was stopped."""
    texts = Counter(
        text
        for message in messages
        for part in message["parts"]
        if part["type"] == "text"
        for text in campaign.acknowledged.steering
        if text in part["text"]
    )
    session_id = tasks[0]["session_id"]
    for text, steered in campaign.acknowledged.steering.items():
        if steered["session_id"] != session_id:
            continue
        assert texts[text] <= 1, f"{text!r} was handled {texts[text]} times"
        stopped = steered["task_id"] in campaign.requested_stops
        assert texts[text] == 1 or stopped, f"{text!r} was lost"


def check_results(messages: Sequence[Mapping[str, Any]]) -> None:
    """Each call has one result right after it, and no id is used twice in a session."""
    open_calls: list[str] = []
    seen: Counter[str] = Counter()
    for message in messages:
        parts = message["parts"]
        results = [part["call_id"] for part in parts if part["type"] == "tool_result"]
        assert results == open_calls
        open_calls = [part["call_id"] for part in parts if part["type"] == "tool_call"]
        seen.update(open_calls)
    assert not open_calls
    assert set(seen.values()) <= {1}, seen.most_common(3)


def check_memory(campaign: Campaign, tasks: Sequence[Task]) -> None:
    """The last request of a session contains every completed task with its answer."""
    name = f"Z{campaign.sessions.index(tasks[0]['session_id'])}"
    request = campaign.model.last_requests[name]
    for task in tasks:
        if task["status"] == "completed" and f"task {name}." not in task["task"]:
            assert task["task"] in request, (name, task["task"])
            assert task["run"]["answer"] in request, (name, task["run"]["answer"])


async def check_questions(campaign: Campaign, events: Sequence[Mapping[str, Any]]) -> None:
    """Each question was asked once and answered once, and acknowledged answers count."""
    page = await campaign.gateway.get("/api/questions?limit=500")
    status = {each["question_id"]: each["status"] for each in page["questions"]}
    assert not [each for each in status.values() if each == "open"]
    for name in ("workflow.question.asked", "workflow.question.answered"):
        times = Counter(e["payload"]["question_id"] for e in events if e["event"] == name)
        assert set(times.values()) <= {1}, (name, times)
        assert set(times) == set(status), json.dumps([name, sorted(times), sorted(status)])
    assert all(status[each] == "answered" for each in campaign.acknowledged.answered)
