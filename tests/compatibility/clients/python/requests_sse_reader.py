# client: requests-sse
# registry: PyPI
# packages: requests-sse==0.5.3
# door: stream
import sse_scenarios
from requests_sse import EventSource


def read(url, last_id):
    with EventSource(
        url, headers=sse_scenarios.HEADERS, latest_event_id=last_id, timeout=60
    ) as source:
        for event in source:
            yield event.type, event.data, event.last_event_id


sse_scenarios.stream(read)
