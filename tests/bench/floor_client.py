"""Baseline: a minimal one-shot client. ``python floor_client.py PORT TOKEN``.

Standard library only: posts a task to a running gateway and reads its stream up to the result.
"""

import http.client
import json
import sys


def main() -> None:
    port, token = int(sys.argv[1]), sys.argv[2]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/api/tasks", json.dumps({"task": "hi"}), headers)
    session = json.loads(connection.getresponse().read())["session_id"]
    connection.request("GET", f"/api/sse?session_id={session}", headers=headers)
    response = connection.getresponse()
    ended = False
    while line := response.readline():
        if ended:
            answer = json.loads(line.removeprefix(b"data: "))["payload"]["final_answer"]
            sys.stdout.write(f"{answer}\n")
            return
        ended = line == b"event: workflow.result.final\n"
    sys.exit("the stream ended")


if __name__ == "__main__":
    main()
