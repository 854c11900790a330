"""Files that people attach: in the session's folder, in the request, and in later runs."""

import base64
import json
import os
import re
from pathlib import Path
from typing import Any

from tests.support import documents
from tests.support.agent_app import open_agent
from tests.support.anthropic_server import Call, Reply, Rules, When, seen_in
from tests.support.database_files import file_contents, query

NO_GATES = {"LARKSPUR_AGENT__GATES": "off"}


def words(request: dict[str, Any]) -> str:
    """Return the texts and results of the messages of a request."""
    return str(request["messages"])


async def test_a_document_is_answered_from_its_content_and_stays_for_later_runs(
    home: Path,
) -> None:
    read = Call("read_file", {"path": "input/report.pdf"})
    rules = Rules(
        [
            Reply(text="Read again.", when=When(last_user="again?", results=1)),
            Reply(calls=[read], when=When(last_user="again?")),
            Reply(text="120"),
        ]
    )
    async with open_agent(home, rules, NO_GATES) as here:
        put = here.services.attachments.put
        report = await put("report.pdf", "application/pdf", documents.pdf("Revenue 120"))
        made = await here.submit("What is the revenue?", attachments=(report,))
        await here.end_of(made)
        assert "Revenue 120" in words(here.model.requests[-1])
        await here.end_of(await here.submit("again?", made.session_id))
        assert words(here.model.requests[-1]).count("Revenue 120") == 2
    folder = home / "workspaces" / made.session_id / "input"
    assert [path.name for path in folder.iterdir()] == ["report.pdf"]


async def test_files_for_a_project_folder_are_not_created_in_it(home: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()

    def respond(request: dict[str, Any]) -> Reply:
        if seen_in(request).results:
            return Reply(text="done")
        (path,) = re.findall(r'path="([^"]*)"', words(request))
        assert path.startswith(str(home))
        return Reply(calls=[Call("read_file", {"path": path})])

    async with open_agent(home, respond, NO_GATES) as here:
        notes = await here.services.attachments.put("notes.txt", "text/plain", b"three herons")
        made = await here.submit(
            "answer", attachments=(notes,), workspace=str(project), permission_mode="ask"
        )
        await here.end_of(made)
        assert seen_in(here.model.requests[-1]).last_result == "three herons"
    assert list(project.iterdir()) == []


async def test_a_picture_is_in_the_requests_and_never_in_the_database(home: Path) -> None:
    content = documents.picture("PNG", (640, 480)) + os.urandom(400_000)
    async with open_agent(home, lambda _: Reply(text="a heron"), NO_GATES) as here:
        picture = await here.services.attachments.put("heron.png", "image/png", content)
        made = await here.submit("what is it?", attachments=(picture,))
        await here.end_of(made)
        for _ in range(3):
            await here.end_of(await here.submit("and now?", made.session_id))
        encoded = base64.b64encode(content).decode()
        for request in here.model.requests:
            sent = json.dumps(request["messages"])
            assert sent.count(encoded) == 1
        written = b"".join(file_contents(home, "larkspur.db*").values())
    assert encoded[1_000:1_100].encode() not in written
    assert content[1_000:1_100] not in written
    rows = query(home / "larkspur.db", "select max(length(message)) from messages")
    assert rows[0][0] < 1_000


async def test_a_file_that_cannot_be_read_is_reported(home: Path) -> None:
    async with open_agent(home, [Reply(text="It is protected.")], NO_GATES) as here:
        file = await here.services.attachments.put(
            "secret.pdf", "application/pdf", documents.encrypted_pdf()
        )
        events = await here.end_of(await here.submit("read it", attachments=(file,)))
        (problem,) = [e["payload"] for e in events if e["event"] == "workflow.notice"]
        assert problem["text"].startswith("secret.pdf: ")
        assert "password" in words(here.model.requests[-1])
