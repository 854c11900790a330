# client: sseclient
# registry: PyPI
# packages: sseclient==0.0.27 requests==2.32.5
# door: stream
import sse_scenarios
import sseclient


def read(url, last_id):
    for event in sseclient.SSEClient(url, last_id=last_id, headers=sse_scenarios.HEADERS):
        # It hands frames without data on.
        if event.data:
            yield event.event, event.data, event.id


sse_scenarios.stream(read)
