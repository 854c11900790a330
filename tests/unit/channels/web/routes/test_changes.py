"""Changed files and the files of a workspace over HTTP."""

from pathlib import Path
from urllib.parse import quote

from tests.support.anthropic_server import Call, Reply
from tests.support.working_web_app import open_working_web_app

NO_GATES = {"LARKSPUR_AGENT__GATES": "off"}


async def test_changes_are_listed_shown_and_undone_and_the_workspace_is_read(
    home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "old.txt").write_text("one\n")
    (folder / "out").symlink_to("/etc")
    call = Call("shell", {"command": "echo 2 > old.txt; mkdir -p 报告; echo 新 > 报告/新.md"})
    script = [Reply(calls=[call]), Reply("done")]
    async with open_working_web_app(home, script, NO_GATES) as app:
        made = await app.core.submit("work", workspace=str(folder))
        await app.core.end_of(made)
        session, run = made.session_id, made.run_id
        base = f"/api/sessions/{session}"

        listed = (await app.client.get(f"{base}/changes?run_id={run}")).json()
        assert [(each["path"], each["kind"]) for each in listed["changes"]] == [
            ("old.txt", "changed"),
            ("报告/新.md", "created"),
        ]
        cut = (await app.client.get(f"{base}/changes?limit=1")).json()
        assert (len(cut["changes"]), cut["total"], cut["is_complete"]) == (1, 2, True)
        change = listed["changes"][0]["change_id"]
        diff = (await app.client.get(f"{base}/changes/{change}/diff")).json()
        assert "-one\n+2" in diff["diff"]
        undone = await app.client.post(f"{base}/changes/{change}/undo", {})
        assert undone.json()["is_undone"]
        assert (folder / "old.txt").read_text() == "one\n"
        assert (await app.client.post(f"{base}/changes/{change}/undo", {})).status == 409
        assert (await app.client.get(f"{base}/changes/none-1/diff")).status == 404

        tree = (await app.client.get(f"{base}/workspace")).json()
        assert [each["path"] for each in tree["entries"]] == ["报告", "old.txt", "out"]
        found = (await app.client.get(f"{base}/workspace?q={quote('新')}")).json()
        assert [each["path"] for each in found["entries"]] == ["报告/新.md"]
        file = f"{base}/workspace/content?path="
        read = await app.client.get(file + quote("报告/新.md"))
        assert (read.status, read.body.decode()) == (200, "新\n")
        for path in ("out/passwd", "../project/old.txt", "missing"):
            assert (await app.client.get(file + quote(path))).status == 404
