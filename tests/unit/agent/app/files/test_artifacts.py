"""Artifacts of real runs: files shared by tools, and files left in output/."""

import asyncio
import hashlib
import itertools
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from internal.agent.app.files.artifacts import MAX_NEW_FILES
from internal.agent.app.runs.creation import Submitted
from internal.agent.domain.artifacts import Artifact
from tests.support.agent_app import Core, open_agent, plan, sound
from tests.support.anthropic_server import Call, Reply

PNG = r"printf '\211PNG\r\n\032\n1234' > output/chart.png"


def script(*batches: list[Call]) -> list[Reply]:
    """Return the replies of a run with a plan, some batches of calls and an answer."""
    return [Reply(calls=[plan()]), *(Reply(calls=calls) for calls in batches), Reply(text="Done.")]


def sh(command: str) -> Call:
    return Call("shell", {"command": f"mkdir -p output && {command}"})


def share(*paths: str, **more: Any) -> Call:
    return Call("share_file", {"paths": list(paths), **more})


async def run(here: Core, made: Submitted | None = None) -> list[dict[str, Any]]:
    """Run a task, in the session of another one if given, and return the stored envelopes."""
    made = await here.submit("make a chart", None if made is None else made.session_id)
    await here.end_of(made)
    events = await here.durable(made)
    sound(events)
    return events


async def artifacts(here: Core, events: list[dict[str, Any]]) -> list[Artifact]:
    """Return the newest artifacts of a session by name, with their bytes checked."""
    stores, files = here.services.stores, here.services.files
    work = partial(stores.artifacts.list_newest, events[0]["session_id"])
    found = [each.artifact for each in await here.services.database.read(work)]
    for each in found:
        content = await files.get(each.sha256)
        assert (each.sha256, each.size) == (hashlib.sha256(content).hexdigest(), len(content))
    return sorted(found, key=lambda each: each.name)


def results(events: list[dict[str, Any]]) -> list[str]:
    """Return the text that the model read for each call."""
    ended = [each["payload"] for each in events if each["event"] == "workflow.tool.completed"]
    return [payload.get("error") or payload["result"] for payload in ended]


def manifests(events: list[dict[str, Any]]) -> list[list[str]]:
    return [
        [f"{entry['name']} v{entry['version']}" for entry in each["payload"]["artifacts"]]
        for each in events
        if each["event"] == "workflow.artifact.manifest"
    ]


async def test_a_file_in_output_becomes_an_artifact_of_the_call_that_wrote_it(home: Path) -> None:
    async with open_agent(home, script([sh(PNG)])) as here:
        events = await run(here)
        (chart,) = await artifacts(here, events)
        manifest = next(each for each in events if each["event"] == "workflow.artifact.manifest")
        completed = next(each for each in events if each["event"] == "workflow.tool.completed")
    assert (chart.name, chart.version, chart.type) == ("chart.png", 1, "image")
    assert (chart.media_type, chart.size, chart.maker) == ("image/png", 12, "shell")
    assert (chart.run_id, chart.task_id) == (manifest["run_id"], manifest["task_id"])
    assert chart.call_id == completed["payload"]["call_id"]
    assert manifest["payload"]["call_id"] == chart.call_id
    assert manifest["payload"]["source_tool"] == "shell"
    assert manifest["payload"]["artifacts"] == [
        {
            "artifact_id": chart.id,
            "name": "chart.png",
            "version": 1,
            "type": "image",
            "media_type": "image/png",
            "sha256": chart.sha256,
            "size": 12,
            "uri": chart.uri,
            "caption": "",
        }
    ]
    assert results(events)[-1].endswith("Shared: chart.png (v1, 12 bytes).")
    assert manifest["seq"] == completed["seq"] + 1


async def test_new_bytes_are_a_new_version_and_equal_bytes_are_none(home: Path) -> None:
    calls = [
        [sh("echo one > output/a.txt")],
        [sh("echo one > output/a.txt; echo b > output/b.txt")],
        [sh("echo two > output/a.txt; mv output/b.txt output/c.txt")],
        [sh("true")],
        [sh("echo one > output/a.txt")],
    ]
    async with open_agent(home, script(*calls)) as here:
        events = await run(here)
        found = await artifacts(here, events)
    assert manifests(events) == [["a.txt v1"], ["b.txt v1"], ["a.txt v2", "c.txt v1"], ["a.txt v3"]]
    assert [(each.name, each.version) for each in found] == [
        ("a.txt", 3),
        ("b.txt", 1),
        ("c.txt", 1),
    ]


async def test_the_next_run_knows_what_the_last_one_shared(home: Path) -> None:
    replies = [
        *script([sh("echo one > output/a.txt; echo b > output/b.txt")]),
        *script([sh("touch output/b.txt")], [sh("echo two > output/a.txt")]),
    ]
    async with open_agent(home, replies[:3]) as here:
        events = await run(here)
    assert manifests(events) == [["a.txt v1", "b.txt v1"]]
    async with open_agent(home, replies[3:]) as here:
        again = await here.submit("once more", events[0]["session_id"])
        await here.end_of(again)
        events = await here.durable(again)
    assert manifests(events) == [["a.txt v2"]]


async def test_the_files_of_a_batch_are_noted_in_its_last_result(home: Path) -> None:
    batch = [sh(f"echo {number} > output/{number}.txt") for number in range(4)]
    async with open_agent(home, script(batch)) as here:
        events = await run(here)
    assert manifests(events) == [[f"{number}.txt v1" for number in range(4)]]
    noted = [text for text in results(events) if "Shared:" in text]
    assert noted == [results(events)[-1]]


async def test_share_file_shares_any_file_of_the_workspace(home: Path) -> None:
    calls = [
        [sh("mkdir -p reports; echo '# Q1' > reports/q1.md; echo x > output/x.txt")],
        [share("reports/q1.md", "output/x.txt", caption=" The \u202efirst\nquarter ")],
    ]
    async with open_agent(home, script(*calls)) as here:
        events = await run(here)
        found = await artifacts(here, events)
    assert manifests(events) == [["x.txt v1"], ["reports/q1.md v1", "x.txt v1"]]
    assert results(events)[-1] == "Shared: reports/q1.md (v1, 5 bytes), x.txt (v1, 2 bytes)."
    assert [(each.name, each.maker, each.caption) for each in found] == [
        ("reports/q1.md", "share_file", "The first quarter"),
        ("x.txt", "shell", ""),
    ]
    assert (found[0].type, found[0].media_type) == ("text", "text/markdown")


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("output", "output is a folder: put it into an archive and share that"),
        ("missing.txt", "missing.txt does not exist in the workspace"),
        ("/etc/passwd", "outside the workspace"),
        ("output/fifo", "output/fifo is not a regular file"),
        ("output/out", "leads outside the workspace"),
    ],
)
async def test_what_is_no_file_of_the_workspace_is_not_shared(
    home: Path, path: str, sentence: str
) -> None:
    make = "mkfifo output/fifo; ln -s /etc/hostname output/out; true"
    async with open_agent(home, script([sh(make)], [share(path)])) as here:
        events = await run(here)
        assert await artifacts(here, events) == []
    assert sentence in results(events)[-1]
    assert manifests(events) == []


async def test_hostile_files_in_output_are_left_out_and_named_once(home: Path) -> None:
    make = (
        "ln -s /etc/passwd output/link.txt; ln a output/hard 2>/dev/null || (echo x > a;"
        " ln a output/hard); mkfifo output/fifo; echo hi > output/.hidden; echo ok > output/ok.txt"
    )
    async with open_agent(home, script([sh(make)], [sh("true")])) as here:
        events = await run(here)
    assert manifests(events) == [["ok.txt v1"]]
    assert results(events)[-2].endswith(
        "Shared: ok.txt (v1, 3 bytes). Not shared: fifo (not a regular file), hard (it has other"
        " names (hard links)), link.txt (a symbolic link)."
    )
    assert "shared" not in results(events)[-1]


async def test_a_file_that_changes_while_it_is_read_is_kept_as_it_was_read(home: Path) -> None:
    calls = [[sh("true")] for _ in range(6)]
    async with open_agent(home, [*script([sh("true")]), *script(*calls)]) as here:
        first = await run(here)
        path = home / "workspaces" / first[0]["session_id"] / "output" / "log.txt"
        is_done = threading.Event()

        def rewrite() -> None:
            with path.open("wb", buffering=0) as file:
                for number in itertools.takewhile(
                    lambda _: not is_done.is_set(), itertools.count()
                ):
                    file.seek(0)
                    for _ in range(100):
                        file.write(bytes([number % 256]) * 10_000)

        writing = asyncio.create_task(asyncio.to_thread(rewrite))
        made = await here.submit("watch it", first[0]["session_id"])
        await here.until(
            made.session_id,
            lambda each: each["run_id"] == made.run_id and _is_result_of(each, "shell"),
        )
        is_done.set()
        await writing
        await here.end_of(made)
        events = await here.durable(made)
        (log,) = await artifacts(here, events)
        for each in events:
            if each["event"] == "workflow.artifact.manifest":
                (entry,) = each["payload"]["artifacts"]
                content = await here.services.files.get(entry["sha256"])
                assert hashlib.sha256(content).hexdigest() == entry["sha256"]
    assert log.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    versions = [name for each in manifests(events) for name in each]
    assert versions == [f"log.txt v{number}" for number in range(1, log.version + 1)]


async def test_names_are_cleaned_and_stay_distinct(home: Path) -> None:
    make = r"""cd output; echo 1 > $'a\u202egnp.txt'; echo 2 > $'a\u202dgnp.txt';
    echo 3 > $'line\nbreak.txt'; echo 4 > $'bad\377.txt'; echo 5 > "$(printf '半%.0s' {1..80}).md";
    touch empty.txt"""
    async with open_agent(home, script([sh(make)], [sh("true")])) as here:
        events = await run(here)
        found = await artifacts(here, events)
        again = await here.submit("again", events[0]["session_id"])
        await here.end_of(again)
        assert manifests(await here.durable(again)) == []
    assert len({each.name for each in found}) == len(found) == 6
    assert all(each.name.isprintable() for each in found)
    assert {each.size for each in found if each.name == "empty.txt"} == {0}


@pytest.mark.slow
async def test_too_many_new_files_are_counted_and_taken_later(home: Path) -> None:
    make = f"for i in $(seq 1 {2 * MAX_NEW_FILES + 3}); do echo $i > output/$i.txt; done"
    async with open_agent(home, script([sh(make)])) as here:
        events = await run(here)
        found = await artifacts(here, events)
    assert results(events)[-1].endswith(
        f"and 190 more. {MAX_NEW_FILES + 3} more new files in output/ are not shared yet: put them"
        " into an archive."
    )
    assert len(found) == 2 * MAX_NEW_FILES  # the second half at the end of the run
    kept = [each["payload"] for each in events if each["event"] == "workflow.artifact.manifest"]
    assert [each["omitted"] for each in kept if each["omitted"]] == [MAX_NEW_FILES + 3, 3]
    assert sum(len(each["artifacts"]) for each in kept) == 2 * MAX_NEW_FILES
    assert kept[-1]["call_id"] == ""


async def test_a_file_that_is_too_large_is_named_and_not_kept(home: Path) -> None:
    calls = [[sh("truncate -s 104857601 output/big.bin")], [share("output/big.bin")]]
    async with open_agent(home, script(*calls)) as here:
        events = await run(here)
        assert await artifacts(here, events) == []
    assert results(events)[-2].endswith("Not shared: big.bin (it is larger than 100.0 MB).")
    assert results(events)[-1] == "output/big.bin cannot be stored: it is larger than 100.0 MB"


async def test_a_store_that_cannot_be_used_costs_no_run(home: Path) -> None:
    calls = [
        [sh("echo one > output/a.txt")],
        [share("output/a.txt")],
        [sh("true")],
    ]
    async with open_agent(home, script(*calls)) as here:
        store = home / "attachments"
        store.write_text("a file where the folder should be")
        made = await here.submit("make a file")
        shared = asyncio.create_task(
            here.until(made.session_id, lambda each: _is_result_of(each, "share_file"))
        )
        await shared
        store.unlink()
        await here.end_of(made)
        events = await here.durable(made)
        found = await artifacts(here, events)
    assert "Not shared: a.txt (attachments cannot be written" in results(events)[-3]
    assert "output/a.txt cannot be stored: attachments cannot be written" in results(events)[-2]
    assert [(each.name, each.version) for each in found] == [("a.txt", 1)]


def _is_result_of(each: dict[str, Any], tool: str) -> bool:
    is_result = each["event"] == "workflow.tool.completed"
    return bool(is_result and each["payload"]["tool_name"] == tool)
