"""Artifacts over HTTP: lists, content, changes and archives of files made by real runs."""

import hashlib
import io
import zipfile
from pathlib import Path
from typing import Any

import pytest

from internal.agent.app.runs.creation import Submitted
from tests.support import documents
from tests.support.anthropic_server import Call, Reply
from tests.support.http_client import Reply as HttpReply
from tests.support.working_web_app import WorkingWebApp, open_working_web_app

PAGE = b"<script>parent.document.title = 'stolen'</script>"
FILES: dict[str, bytes] = {
    "chart.png": b"\x89PNG\r\n\x1a\n" + bytes(100),
    "notes.md": "# 報告\n".encode() * 1_000,
    "sub/data.csv": b"a,b\n1,2\n",
    "page.html": PAGE,
    "logo.svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
    "report.pdf": b"%PDF-1.7 ...",
    "blob": b"\0\1\2",
    "empty.txt": b"",
    "fake.png": PAGE,
    "table.xlsx": b"PK\x03\x04....",
}


def script(folder: Path, runs: int = 1) -> list[Reply]:
    """Return a model whose runs each copy a folder of files to output/."""
    copy = f"mkdir -p output && cp -r {folder}/. output/"
    return [
        Reply(calls=[Call("plan", {"goal": "g", "steps": ["s"]})]),
        Reply(calls=[Call("shell", {"command": copy})]),
        Reply("done"),
    ] * runs


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "files"
    for name, content in FILES.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_bytes(content)
    return made


async def run(app: WorkingWebApp, **fields: Any) -> Submitted:
    made = await app.task(options={"permission_mode": "all"}, **fields)
    await app.end_of(made)
    return made


async def listed(app: WorkingWebApp, query: str = "") -> list[dict[str, Any]]:
    reply = await app.client.get(f"/api/artifacts?{query}")
    assert reply.status == 200, reply
    page: list[dict[str, Any]] = reply.json()["artifacts"]
    return page


async def by_name(app: WorkingWebApp) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in await listed(app)}


async def content(
    app: WorkingWebApp, artifact: dict[str, Any], query: str = "", **headers: str
) -> HttpReply:
    path = f"/api/artifacts/{artifact['artifact_id']}/content?{query}"
    return await app.client.get(path, headers={k.replace("_", "-"): v for k, v in headers.items()})


async def test_the_files_of_runs_are_listed_and_read(home: Path, folder: Path) -> None:
    async with open_working_web_app(home, script(folder)) as app:
        made = await run(app)
        found = await by_name(app)
        assert found.keys() == FILES.keys()
        for name, artifact in found.items():
            sha256 = hashlib.sha256(FILES[name]).hexdigest()
            assert (artifact["sha256"], artifact["size"]) == (sha256, len(FILES[name]))
            assert (artifact["run_id"], artifact["source_tool"]) == (made.run_id, "shell")
            path = f"/api/artifacts/{artifact['artifact_id']}"
            assert (await app.client.get(path)).json() == artifact
            assert (await content(app, artifact)).body == FILES[name]
        assert {each["name"]: each["type"] for each in found.values()} == {
            "chart.png": "image",
            "notes.md": "text",
            "sub/data.csv": "table",
            "page.html": "code",
            "logo.svg": "image",
            "report.pdf": "document",
            "blob": "other",
            "empty.txt": "text",
            "fake.png": "other",
            "table.xlsx": "table",
        }


async def test_the_manifest_is_on_the_stream_and_in_the_log(home: Path, folder: Path) -> None:
    async with open_working_web_app(home, script(folder)) as app:
        made = await run(app)
        async with app.client.stream(f"session_id={made.session_id}") as stream:
            frames = await stream.until("replay.done")
        path = f"/api/sessions/{made.session_id}/events?types=workflow.artifact.manifest"
        (stored,) = (await app.client.get(path)).json()["events"]
    (shown,) = [frame for frame in frames if frame.event == "workflow.artifact.manifest"]
    assert shown.json() == stored["event"]
    assert {each["name"] for each in shown.json()["payload"]["artifacts"]} == FILES.keys()


async def test_lists_are_filtered_and_paged(home: Path, folder: Path) -> None:
    async with open_working_web_app(home, script(folder, 3)) as app:
        first = await run(app)
        (folder / "notes.md").write_text("# New")
        second = await run(app, session_id=first.session_id)
        other = await run(app)
        in_session = f"session_id={first.session_id}"
        assert len(await listed(app, in_session)) == len(FILES)
        assert len(await listed(app, f"{in_session}&versions=all")) == len(FILES) + 1
        (note,) = await listed(app, f"task_id={second.task_id}")
        assert (note["name"], note["version"]) == ("notes.md", 2)
        assert len(await listed(app, f"task_id={other.task_id}")) == len(FILES)
        images = {each["name"] for each in await listed(app, f"{in_session}&type=image")}
        assert images == {"chart.png", "logo.svg"}
        assert {each["name"] for each in await listed(app, "q=DATA")} == {"sub/data.csv"}
        seen: list[str] = []
        query = "limit=3"
        while query:
            reply = (await app.client.get(f"/api/artifacts?{query}")).json()
            seen += [each["artifact_id"] for each in reply["artifacts"]]
            cursor = reply["next_cursor"]
            query = f"limit=3&cursor={cursor}" if cursor else ""
        assert len(seen) == len(set(seen)) == 2 * len(FILES)


@pytest.mark.parametrize(
    ("name", "shown_as"),
    [
        ("chart.png", "image/png"),
        ("notes.md", "text/plain; charset=utf-8"),
        ("sub/data.csv", "text/plain; charset=utf-8"),
        ("page.html", "text/html; charset=utf-8"),
        ("logo.svg", "image/svg+xml"),
        ("report.pdf", "application/pdf"),
        ("blob", ""),
        ("fake.png", ""),
        ("table.xlsx", ""),
    ],
)
@pytest.mark.first_rows(4)
async def test_only_what_is_safe_is_shown_and_as_a_document_of_a_foreign_origin(
    home: Path, folder: Path, name: str, shown_as: str
) -> None:
    async with open_working_web_app(home, script(folder)) as app:
        await run(app)
        artifact = (await by_name(app))[name]
        stored = await content(app, artifact)
        shown = await content(app, artifact, "inline=true")
    for reply in (stored, shown):
        assert reply.status == 200
        assert reply.body == FILES[name]
        assert reply.headers["x-content-type-options"] == "nosniff"
        policy = reply.headers["content-security-policy"].split("; ")
        assert {"sandbox", "default-src 'none'", "frame-ancestors 'self'"} <= set(policy)
        assert "x-frame-options" not in reply.headers
        assert "content-encoding" not in reply.headers
    assert stored.headers["content-disposition"].startswith("attachment; filename=")
    kind = "inline" if shown_as else "attachment"
    assert shown.headers["content-disposition"].startswith(f"{kind}; filename=")
    if shown_as:
        assert shown.headers["content-type"] == shown_as


@pytest.mark.parametrize(
    ("asked", "status", "start", "end"),
    [
        ("bytes=0-3", 206, 0, 4),
        ("bytes=100-", 206, 100, None),
        ("bytes=-7", 206, -7, None),
        ("bytes=5-99999999", 206, 5, None),
        ("bytes=0-1,3-4", 200, 0, None),
        ("pages=1-2", 200, 0, None),
        ("bytes=-", 200, 0, None),
        ("bytes=99999999-", 416, 0, None),
        ("bytes=9-3", 416, 0, None),
        ("bytes=-0", 416, 0, None),
    ],
)
@pytest.mark.first_rows(4)
async def test_a_part_of_a_file_is_read(
    home: Path, folder: Path, asked: str, status: int, start: int, end: int | None
) -> None:
    async with open_working_web_app(home, script(folder)) as app:
        await run(app)
        artifact = (await by_name(app))["notes.md"]
        reply = await content(app, artifact, range=asked)
        size = artifact["size"]
        assert reply.status == status
        if status == 416:
            assert reply.headers["content-range"] == f"bytes */{size}"
            assert reply.error["code"] == "range"
            return
        assert reply.body == FILES["notes.md"][start:end]
        first, last = range(size)[start:end][0], range(size)[start:end][-1]
        whole = f"bytes {first}-{last}/{size}" if status == 206 else None
        assert reply.headers.get("content-range") == whole
        assert reply.headers["accept-ranges"] == "bytes"
        other = await content(app, artifact, range=asked, if_range='"another"')
        assert (other.status, other.body) == (200, FILES["notes.md"])
        same = await content(app, artifact, range=asked, if_range=reply.headers["etag"])
        assert (same.status, same.body) == (status, reply.body)


async def test_a_head_request_gets_the_size_alone(home: Path, folder: Path) -> None:
    async with open_working_web_app(home, script(folder)) as app:
        made = await run(app)
        artifact = (await by_name(app))["notes.md"]
        path = f"/api/artifacts/{artifact['artifact_id']}/content"
        reply = await app.client.request("HEAD", path)
        assert (reply.status, reply.headers["content-length"]) == (200, str(artifact["size"]))
        zipped = await app.client.request("HEAD", f"/api/sessions/{made.session_id}/files.zip")
        assert (zipped.status, zipped.body) == (200, b"")


async def test_favourite_and_caption_are_changed(home: Path, folder: Path) -> None:
    async with open_working_web_app(home, script(folder)) as app:
        await run(app)
        path = f"/api/artifacts/{(await by_name(app))['chart.png']['artifact_id']}"
        changed = await app.client.request("PATCH", path, {"favourite": True})
        assert (changed.json()["favourite"], changed.json()["caption"]) == (True, "")
        caption = " Best \u202e of\n all "
        changed = await app.client.request("PATCH", path, {"caption": caption})
        assert (changed.json()["favourite"], changed.json()["caption"]) == (True, "Best of all")
        assert [each["name"] for each in await listed(app, "favourite=true")] == ["chart.png"]
        assert [each["name"] for each in await listed(app, "q=best%20of")] == ["chart.png"]
        assert (await app.client.request("PATCH", path, {})).json() == changed.json()
        for body in ({"caption": "x" * 301}, {"favourite": "yes"}, {"name": "other"}):
            refused = await app.client.request("PATCH", path, body)
            assert (refused.status, refused.error["code"]) == (400, "malformed")


async def test_all_files_of_a_session_are_one_archive(home: Path, folder: Path) -> None:
    async with open_working_web_app(home, script(folder)) as app:
        made = await run(app)
        reply = await app.client.get(f"/api/sessions/{made.session_id}/files.zip")
        empty = (await app.client.post("/api/sessions", {"title": "空 / empty"})).json()
        nothing = await app.client.get(f"/api/sessions/{empty['session_id']}/files.zip")
    assert (reply.status, reply.headers["content-type"]) == (200, "application/zip")
    archive = zipfile.ZipFile(io.BytesIO(reply.body))
    assert archive.testzip() is None
    assert {name: archive.read(name) for name in archive.namelist()} == FILES
    assert zipfile.ZipFile(io.BytesIO(nothing.body)).namelist() == []
    assert "filename*=UTF-8''%E7%A9%BA%20%20%20empty.zip" in nothing.headers["content-disposition"]


async def test_artifacts_are_removed_with_their_session(home: Path, folder: Path) -> None:
    async with open_working_web_app(home, script(folder, 3)) as app:
        made = await run(app)
        other = await run(app)
        (chart,) = await listed(app, f"session_id={other.session_id}&q=chart.png")
        deleted = await app.client.request("DELETE", f"/api/sessions/{made.session_id}")
        assert deleted.status == 204
        assert {each["session_id"] for each in await listed(app)} == {other.session_id}
        assert (await content(app, chart)).body == FILES["chart.png"]  # the other has it as well
        (folder / "only.txt").write_text("only here")
        last = await run(app)
        only = (await by_name(app))["only.txt"]
        await app.client.request("DELETE", f"/api/sessions/{last.session_id}")
        gone = await content(app, only)
        assert (gone.status, gone.error["code"]) == (404, "not_found")
        assert (await app.client.get(f"/api/attachments/{only['sha256']}")).status == 404


@pytest.mark.parametrize("path", ["/api/artifacts/artifact-1", "/api/artifacts/x/content"])
async def test_an_unknown_artifact_is_not_found(home: Path, path: str) -> None:
    async with open_working_web_app(home, [Reply("done")]) as app:
        reply = await app.client.get(path)
        assert (reply.status, reply.error["code"]) == (404, "not_found")
        assert (await app.client.get("/api/artifacts?cursor=artifact-1")).status == 404
        assert (await app.client.get("/api/sessions/s/files.zip")).status == 404


async def test_a_file_that_the_store_lost_is_not_found(home: Path, folder: Path) -> None:
    async with open_working_web_app(home, script(folder)) as app:
        await run(app)
        chart = (await by_name(app))["chart.png"]
        (home / "attachments" / chart["sha256"][:2] / chart["sha256"]).unlink()
        reply = await content(app, chart)
        assert (reply.status, reply.error["code"]) == (404, "not_found")


async def test_the_pages_of_a_pdf_are_pictures(folder: Path, home: Path) -> None:
    (folder / "two.pdf").write_bytes(documents.pdf("one", "two"))
    async with open_working_web_app(home, script(folder)) as app:
        await run(app)
        paths = {
            each["name"]: f"/api/artifacts/{each['artifact_id']}/pages"
            for each in await listed(app)
        }
        first, second = [await app.client.get(f"{paths['two.pdf']}/{n}") for n in (1, 2)]
        assert (first.status, second.status) == (200, 200)
        assert first.headers["larkspur-pages"] == "2"
        assert first.headers["content-type"] == "image/png"
        assert first.body.startswith(b"\x89PNG")
        assert first.body != second.body
        for path, sentence in {
            f"{paths['two.pdf']}/3": "has 2 pages: there is no page 3",
            f"{paths['two.pdf']}/0": "there is no page 0",
            f"{paths['two.pdf']}/x": "there is no page 0",
            f"{paths['report.pdf']}/1": "damaged",
            f"{paths['notes.md']}/1": "not a picture",
        }.items():
            reply = await app.client.get(path)
            assert (reply.status, reply.json()["error"]["code"]) == (404, "unreadable"), path
            assert sentence in reply.json()["error"]["message"], path
        missing = await app.client.get("/api/artifacts/artifact-none/pages/1")
        assert missing.status == 404


async def test_the_pages_of_an_attached_pdf_are_pictures(home: Path) -> None:
    async with open_working_web_app(home, []) as app:
        content = documents.pdf("one")
        reply = await app.client.request("PUT", "/api/attachments?name=a.pdf", content)
        path = f"/api/attachments/{reply.json()['sha256']}/pages"
        page = await app.client.get(f"{path}/1")
        assert (page.status, page.headers["larkspur-pages"]) == (200, "1")
        assert (await app.client.get("/api/attachments/none/pages/1")).status == 404
        assert (await app.client.get(f"/api/attachments/{'0' * 64}/pages/1")).status == 404
