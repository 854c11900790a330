"""Routes for attachments."""

import base64

from tests.support.web_calls import Call


async def test_file_names_are_stored_without_directories_and_control_characters(
    call: Call,
) -> None:
    for name, stored in (
        ("../../etc/passwd", "passwd"),
        ("a\\b\x07.txt", "b_.txt"),
        ("..", "file"),
    ):
        body = {"name": name, "media_type": "text/plain", "data": base64.b64encode(b"x").decode()}
        reply = await call("POST", "/api/attachments", body)
        assert reply.json()["name"] == stored


async def test_attachments_are_served_as_downloads(call: Call) -> None:
    body = {"name": "a.html", "media_type": "text/html", "data": base64.b64encode(b"<p>").decode()}
    sha256 = (await call("POST", "/api/attachments", body)).json()["sha256"]
    reply = await call("GET", f"/api/attachments/{sha256}")
    assert reply.body == b"<p>"
    assert reply.headers["content-type"] == "application/octet-stream"
    assert reply.headers["content-disposition"].startswith("attachment;")
    assert (await call("GET", "/api/attachments/..")).status == 404
