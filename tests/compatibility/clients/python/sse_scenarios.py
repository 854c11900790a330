"""Scenarios for readers of server-sent events."""

import json
import urllib.request

import scenarios

HEADERS = {"Authorization": f"Bearer {scenarios.KEY}"}
END = "workflow.result.final"


def post(path, body):
    request = urllib.request.Request(  # noqa: S310 - the gateway
        f"{scenarios.URL}{path}",
        data=json.dumps(body).encode(),
        headers={**HEADERS, "content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:  # noqa: S310 - the gateway
        return json.load(response)


def address(session, *further):
    return f"{scenarios.URL}/api/sse?" + "&".join([f"session_id={session}", *further])


def stream(read):
    """Do all scenarios. `read(url, last_id)` gives the events of a stream as (name, data, id)."""

    def until_end(session, last_id=None, *further):
        found = []
        for name, data, event_id in read(address(session, *further), last_id):
            found.append((name, data, event_id))
            if END in {name, _named(data)}:
                return found
        raise RuntimeError("the stream ended before the run")

    def named():
        made = post("/api/tasks", {"task": scenarios.prompt("plain")})
        found = until_end(made["session_id"])
        for _, data, _ in found:
            json.loads(data)
        return sorted({name for name, _, _ in found})

    def unnamed():
        made = post("/api/tasks", {"task": scenarios.prompt("plain")})
        found = until_end(made["session_id"], None, "unnamed=1")
        names = {name for name, _, _ in found} - {"", None, "message"}
        return sorted(names) or sorted({_named(data) for _, data, _ in found})

    def resumed():
        made = post("/api/tasks", {"task": scenarios.prompt("plain")})
        last_id = [each for _, _, each in until_end(made["session_id"]) if each][-1]
        post("/api/tasks", {"task": scenarios.prompt("later"), "session_id": made["session_id"]})
        return "".join(data for _, data, _ in until_end(made["session_id"], last_id))

    scenarios.attempt("named", named)
    scenarios.attempt("unnamed", unnamed)
    scenarios.attempt("resumed", resumed)
    scenarios.end()


def _named(data):
    try:
        return json.loads(data).get("event", "")
    except ValueError:
        return ""
