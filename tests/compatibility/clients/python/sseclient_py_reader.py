# client: sseclient-py
# registry: PyPI
# packages: sseclient-py==1.9.0 requests==2.32.5
# door: stream
import requests
import sse_scenarios
import sseclient


def read(url, last_id):
    headers = {**sse_scenarios.HEADERS, **({"Last-Event-ID": last_id} if last_id else {})}
    with requests.get(url, headers=headers, stream=True, timeout=60) as response:
        response.raise_for_status()
        for event in sseclient.SSEClient(response).events():
            yield event.event, event.data, event.id


sse_scenarios.stream(read)
