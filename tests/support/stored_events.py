"""The events of a session as a client reads them."""

from tests.support.http_client import HttpClient, SseFrame


async def read(client: HttpClient, session: str, after: str = "") -> list[SseFrame]:
    """Return the frames of a session after a cursor up to the newest stored event."""
    query = f"session_id={session}" + (f"&after={after}" if after else "")
    async with client.stream(query) as stream:
        return await stream.until("replay.done")


def events(frames: list[SseFrame]) -> list[tuple[str, str]]:
    return [(frame.id, frame.data) for frame in frames if frame.id]


def was_reset(frames: list[SseFrame]) -> bool:
    return any(frame.event == "stream.reset" for frame in frames)
