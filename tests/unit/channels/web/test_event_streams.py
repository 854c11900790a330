"""The limit of open streams."""

import msgspec
import pytest

from internal.channels.web.errors import HttpError
from internal.channels.web.event_streams import EventStreams
from internal.channels.web.services import WebServices


async def test_each_principal_has_a_limit_of_its_own(services: WebServices) -> None:
    settings = services.settings.model_copy(update={"streams_per_user": 1})
    streams = EventStreams(msgspec.structs.replace(services, settings=settings))
    with streams.reserve("ada"), streams.reserve("bo"):
        with pytest.raises(HttpError) as rejected, streams.reserve("ada"):
            pass
        assert rejected.value.status == 429
    with streams.reserve("ada"):
        pass
