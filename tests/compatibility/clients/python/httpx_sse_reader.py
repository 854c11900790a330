# client: httpx-sse
# registry: PyPI
# packages: httpx-sse==0.4.3 httpx==0.28.1
# door: stream
import httpx
import sse_scenarios
from httpx_sse import connect_sse


def read(url, last_id):
    headers = {**sse_scenarios.HEADERS, **({"Last-Event-ID": last_id} if last_id else {})}
    with httpx.Client(timeout=60) as client, connect_sse(client, "GET", url, headers=headers) as it:
        for event in it.iter_sse():
            yield event.event, event.data, event.id


sse_scenarios.stream(read)
