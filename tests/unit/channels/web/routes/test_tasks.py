"""Routes for tasks."""

from tests.support.web_calls import Call


async def test_a_task_is_stored_with_its_run(call: Call) -> None:
    created = (await call("POST", "/api/tasks", {"task": "write a report"})).json()
    task = (await call("GET", f"/api/tasks/{created['task_id']}")).json()
    assert (task["task"], task["status"]) == ("write a report", "queued")
    assert task["run"]["run_id"] == created["run_id"]


async def test_contradicting_plan_reviews_are_rejected(call: Call) -> None:
    body = {"task": "x", "plan_review": "always", "options": {"plan_review": "off"}}
    assert (await call("POST", "/api/tasks", body)).status == 400
