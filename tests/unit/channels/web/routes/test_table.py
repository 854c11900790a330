"""The route table."""

import re

from internal.channels.web.routes.table import ENDPOINTS, ROUTES


def test_each_method_and_path_is_listed_once() -> None:
    listed = [(endpoint.method, endpoint.path) for endpoint in ROUTES]
    assert len(set(listed)) == len(listed)


def test_every_endpoint_is_described() -> None:
    for endpoint in ENDPOINTS:
        assert re.match(r"[A-Z].*\.$", (endpoint.handler.__doc__ or "").partition("\n")[0])
