"""Several hosts on one database: where the files of a session are, and who executes its runs."""

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from internal.agent.app.hosts.absence import HostAbsence
from internal.agent.app.runs.creation import Submitted
from internal.agent.domain.errors import Conflict, LarkspurError, NotFound
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.store.files import HostRow
from internal.config.home import prepare
from internal.config.loader import load
from larkspur.services import open_terminal
from tests.support.agent_app import Core, open_agent
from tests.support.anthropic_server import Call, Reply, Rules, When

WRITE = Call("write_file", {"path": "note.md", "content": "of the first host\n"})
READ = Call("read_file", {"path": "note.md"})
SCRIPT = Rules(
    [
        Reply(text="written", when=When(last_user="write", results=1)),
        Reply(calls=[WRITE], when=When(last_user="write")),
        Reply(text="read", when=When(last_user="read", results=1)),
        Reply(calls=[READ], when=When(last_user="read")),
        Reply(text="nothing to do"),
    ]
)


class Team:
    """The folders of hosts that share a database and attachments."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self._folder = folder
        self._settings = settings
        (folder / "database").mkdir()

    def home(self, name: str) -> Path:
        return self._folder / f"home-{name}"

    def environ(self, name: str, **more: str) -> dict[str, str]:
        return {
            "LARKSPUR_DATABASE__URL": f"sqlite:///{self._folder}/database/larkspur.db",
            "LARKSPUR_ATTACHMENTS__FOLDER": str(self._folder / "attachments"),
            "LARKSPUR_DISPATCH__HOST": name,
            "LARKSPUR_AGENT__GATES": "off",
            **self._settings,
            **more,
        }

    def host(self, name: str, script: Any = SCRIPT, **more: str) -> Any:
        return open_agent(prepare(self.home(name)), script, self.environ(name, **more))

    def workspace(self, name: str, made: Submitted) -> Path:
        return self.home(name) / "workspaces" / made.session_id


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "team"
    path.mkdir()
    return path


async def host_of(here: Core, made: Submitted) -> str:
    services = here.services
    read = partial(services.stores.hosts.get_of_session, made.session_id)
    return await services.database.read(read)


def results(events: list[dict[str, Any]]) -> list[Mapping[str, Any]]:
    return [each["payload"] for each in events if each["event"] == "workflow.tool.completed"]


def problems(events: list[dict[str, Any]]) -> list[str]:
    return [e["payload"]["text"] for e in events if e["event"] == "workflow.notice"]


async def test_the_tasks_of_a_session_are_executed_where_its_files_are(folder: Path) -> None:
    team = Team(folder)
    async with team.host("one") as one:
        first = await one.submit("write")
        await one.end_of(first)
        assert await host_of(one, first) == "one"
    async with team.host("two") as two:
        waiting = await two.submit("read", first.session_id)
        other = await two.submit("read")  # of a session without a host
        await two.end_of(other)
        assert (await two.run(waiting)).status == "queued"
        assert await host_of(two, other) == "two"
    async with team.host("one") as one:
        events = await one.end_of(waiting)
        assert "of the first host" in results(events)[-1]["result"]


async def test_a_session_without_files_is_executed_anywhere(folder: Path) -> None:
    team = Team(folder)
    async with team.host("one") as one:
        first = await one.submit("hello")
        await one.end_of(first)
        assert await host_of(one, first) == ""
    async with team.host("two") as two:
        second = await two.submit("write", first.session_id)
        await two.end_of(second)
        assert await host_of(two, first) == "two"
        assert (team.workspace("two", first) / "note.md").exists()
    async with team.host("one") as one:
        waiting = await one.submit("read", first.session_id)
        await one.end_of(await one.submit("anything"))
        assert (await one.run(waiting)).status == "queued"


async def test_a_session_with_a_file_of_a_person_is_bound_at_once(folder: Path) -> None:
    team = Team(folder)
    async with team.host("one", [Reply(text="seen")]) as one:
        file = await one.services.attachments.put("a.txt", "text/plain", b"words")
        made = await one.submit("look", attachments=(file,))
        await one.end_of(made)
        assert await host_of(one, made) == "one"


async def test_a_run_goes_on_where_another_one_has_used_files_meanwhile(folder: Path) -> None:
    team = Team(folder)
    script = Rules(
        [
            Reply(text="read", when=When(results=1)),
            Reply(calls=[READ], hold="go"),
        ]
    )
    async with team.host("one", script) as one:
        services = one.services
        made = await one.submit("read")
        await one.model.until_asked(1)
        bind = partial(services.stores.hosts.bind, made.session_id, "two")
        await services.database.write(bind)
        one.model.release("go")
        async with asyncio.timeout(30):
            while (await one.run(made)).status == "running":
                pass
        assert (await one.run(made)).status == "queued"
        assert results(await one.durable(made)) == []
    async with team.host("two", script) as other:
        other.model.release("go")
        events = await other.end_of(made)
        assert "does not exist" in results(events)[-1]["error"]
        assert len(results(events)) == 1


async def test_an_archive_brings_the_files_to_another_host(folder: Path) -> None:
    team = Team(folder, LARKSPUR_WORKSPACES__LOCATION="archive")
    async with team.host("one") as one:
        first = await one.submit("write")
        await one.end_of(first)
        assert await host_of(one, first) == ""
    async with team.host("two") as two:
        second = await two.submit("read", first.session_id)
        events = await two.end_of(second)
        assert "of the first host" in results(events)[-1]["result"]
        copy = team.workspace("two", first) / "note.md"
        assert copy.read_text() == "of the first host\n"
        copy.write_text("of the second host\n")
        await two.end_of(await two.submit("anything", first.session_id))
    async with team.host("one") as one:  # its own copy is not the newest any more
        events = await one.end_of(await one.submit("read", first.session_id))
        assert "of the second host" in results(events)[-1]["result"]


async def test_a_paused_run_continues_on_another_host(folder: Path) -> None:
    team = Team(folder, LARKSPUR_WORKSPACES__LOCATION="archive")
    ask = Call("request_user", {"question": "Which colour?"})
    script = Rules(
        [
            Reply(text="done", when=When(all_results=3)),
            Reply(calls=[READ], when=When(all_results=2)),
            Reply(calls=[ask], when=When(all_results=1)),
            Reply(calls=[WRITE]),
        ]
    )
    async with team.host("one", script) as one:
        made = await one.submit("paint")
        question = await one.asked(made)
        assert await host_of(one, made) == ""
    async with team.host("two", script) as two:
        await two.answer(question["question_id"], text="green")
        events = await two.end_of(made)
        assert events[-1]["payload"]["final_answer"] == "done"
        assert "of the first host" in results(events)[-1]["result"]
        assert (team.workspace("two", made) / "note.md").exists()


async def test_shared_folders_are_used_by_every_host(folder: Path) -> None:
    shared = {
        "LARKSPUR_WORKSPACES__LOCATION": "shared",
        "LARKSPUR_WORKSPACES__FOLDER": str(folder / "shared"),
    }
    team = Team(folder, **shared)
    async with team.host("one") as one:
        first = await one.submit("write")
        await one.end_of(first)
        assert await host_of(one, first) == ""
        assert (folder / "shared" / "workspaces" / first.session_id / "note.md").exists()
    async with team.host("two") as two:
        events = await two.end_of(await two.submit("read", first.session_id))
        assert "of the first host" in results(events)[-1]["result"]


async def test_a_folder_that_a_person_named_binds_the_session(folder: Path) -> None:
    team = Team(folder, LARKSPUR_WORKSPACES__LOCATION="archive")
    project = folder / "project"
    project.mkdir()
    async with team.host("one") as one:
        made = await one.submit("write", workspace=str(project))
        await one.end_of(made)
        assert await host_of(one, made) == "one"
        assert (project / "note.md").exists()


async def test_a_stopped_run_is_archived_afterwards(folder: Path) -> None:
    team = Team(folder, LARKSPUR_WORKSPACES__LOCATION="archive")
    script = [Reply(calls=[WRITE]), Reply(hang=True)]
    async with team.host("one", script) as one:
        made = await one.submit("write")
        await one.until(made.session_id, lambda e: e["event"] == "workflow.tool.completed")
        await one.services.gateway.stop(made.task_id, LOCAL_OWNER, "web")
        await one.end_of(made)
        async with asyncio.timeout(30):
            while await host_of(one, made):
                await one.services.keeper.save_unsaved()
    async with team.host("two", [Reply(calls=[READ]), Reply(text="read")]) as two:
        events = await two.end_of(await two.submit("read", made.session_id))
        assert "of the first host" in results(events)[-1]["result"]


async def test_a_workspace_that_cannot_be_archived_stays_on_its_host(folder: Path) -> None:
    team = Team(folder, LARKSPUR_WORKSPACES__LOCATION="archive")
    async with team.host("one") as one:
        worktrees = team.home("one") / "worktrees"
        made = await one.submit("anything")
        await one.end_of(made)
        (worktrees / f"{made.session_id}.task-1").mkdir(parents=True)
        team.workspace("one", made).mkdir(parents=True)
        (team.workspace("one", made) / "new").touch()
        events = await one.end_of(await one.submit("more", made.session_id))
        assert await host_of(one, made) == "one"
        sentence = (
            "The files of this session stay on host one, which executes its next tasks: there is a"
            " git worktree of one of its subtasks."
        )
        assert problems(events) == [sentence]


async def test_people_are_told_of_a_missing_host_and_can_move_the_session(folder: Path) -> None:
    team = Team(folder)
    async with team.host("one") as one:
        first = await one.submit("write")
        await one.end_of(first)
    async with team.host("two") as two:
        services = two.services
        second = await two.submit("read", first.session_id)
        absence = partial(
            HostAbsence,
            "two",
            services.database,
            services.stores,
            broadcaster=services.broadcaster,
            clock=services.clock,
        )
        assert await absence().check() == 0  # it was seen a moment ago
        gone = HostRow("one", "", "2026-01-31T08:00:00.000Z")
        await services.database.write(partial(services.stores.hosts.save, gone))
        assert await absence().check() == 1
        assert await absence().check() == 0  # once only
        sentence = (
            "Waiting for host one, where the files of this session are; it was last seen"
            " 2026-01-31 08:00 UTC. To go on without these files: larkspur sessions move"
            f" {first.session_id} --any-host"
        )
        assert problems(await two.durable(second)) == [sentence]
        move = partial(services.gateway.move_session, first.session_id, LOCAL_OWNER, "cli")
        with pytest.raises(NotFound, match="no host three; known hosts: one, two"):
            await move(host="three")
        assert (await move(host="")).previous == "one"
        events = await two.end_of(second)
        assert "does not exist" in results(events)[-1]["error"]


async def test_a_session_is_not_moved_while_a_task_of_it_is_running(folder: Path) -> None:
    team = Team(folder)
    async with team.host("one", [Reply(text="now", hold="go")]) as one:
        made = await one.submit("wait")
        await one.until(made.session_id, lambda e: e["payload"].get("phase") == "execute")
        with pytest.raises(Conflict, match="A task of this session is running: wait"):
            await one.services.gateway.move_session(made.session_id, LOCAL_OWNER, "cli", host="")
        one.model.release("go")
        await one.end_of(made)


async def test_a_moved_session_has_the_files_of_its_archive(folder: Path) -> None:
    team = Team(folder, LARKSPUR_WORKSPACES__LOCATION="archive")
    async with team.host("one") as one:
        first = await one.submit("write")
        await one.end_of(first)
        changed = team.workspace("one", first) / "note.md"
        changed.write_text("not archived\n")
        moved = await one.services.gateway.move_session(
            first.session_id, LOCAL_OWNER, "cli", host="one"
        )
        assert moved.archive is not None
        events = await one.end_of(await one.submit("read", first.session_id))
        assert "of the first host" in results(events)[-1]["result"]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"LARKSPUR_ATTACHMENTS__FOLDER": "{folder}/other"}, "The attachments of this host"),
        ({"LARKSPUR_DISPATCH__HOST": "one"}, "Another host of this database is called one"),
        (
            {
                "LARKSPUR_WORKSPACES__LOCATION": "shared",
                "LARKSPUR_WORKSPACES__FOLDER": "{folder}/elsewhere",
            },
            "is not the one that the other hosts share for workspaces",
        ),
        ({"LARKSPUR_WORKSPACES__FOLDER": "{folder}/home-one"}, "are those of host one"),
    ],
)
async def test_a_host_without_what_the_others_share_does_not_start(
    folder: Path, settings: dict[str, str], sentence: str
) -> None:
    team = Team(folder)
    common = {}
    if settings.get("LARKSPUR_WORKSPACES__LOCATION"):
        common = {**settings, "LARKSPUR_WORKSPACES__FOLDER": f"{folder}/shared"}
    async with team.host("one", **common):
        pass
    given = {name: value.format(folder=folder) for name, value in settings.items()}
    with pytest.raises(LarkspurError, match=sentence):
        async with team.host("two", **given):
            pass


@pytest.mark.slow
async def test_a_host_with_another_token_does_not_start(folder: Path) -> None:
    team = Team(folder)
    for name in ("one", "two"):
        token = prepare(team.home(name)) / "token"
        token.write_text(name * 20)
        token.chmod(0o600)
    async with team.host("one"):
        pass
    with pytest.raises(LarkspurError, match="has another token than those of the other hosts"):
        async with team.host("two"):
            pass
    token = team.home("two") / "token"
    token.write_text("one" * 20)
    async with team.host("two") as two:
        token.write_text("new" * 20)  # while the host works
        states, services = two.services.supervisor, two.services
        recorded = partial(services.stores.hosts.get_storage, "home")
        before = await services.database.read(recorded)
        async with asyncio.timeout(30):
            while before == await services.database.read(recorded):
                pass
        assert not [each.failure for each in states.states if each.failure]
    with pytest.raises(LarkspurError, match="has another token"):
        async with team.host("one"):
            pass
    async with team.host("two"):
        pass


async def test_a_terminal_needs_the_attachments_but_not_the_token(folder: Path) -> None:
    team = Team(folder)
    for name in ("one", "two"):
        token = prepare(team.home(name)) / "token"
        token.write_text(name * 20)
        token.chmod(0o600)
    async with team.host("one") as one:
        environ = {
            "LARKSPUR_HOME": str(team.home("two")),
            "LARKSPUR_LLM__PROVIDER": "offline",
            "LARKSPUR_SANDBOX__PROVIDER": "native",
            **team.environ("two"),
        }
        async with open_terminal(load(environ=environ)) as terminal:
            assert terminal.leases.host.name == "two"
        elsewhere = {**environ, "LARKSPUR_ATTACHMENTS__FOLDER": str(folder / "elsewhere")}
        with pytest.raises(LarkspurError, match="The attachments of this host"):
            async with open_terminal(load(environ=elsewhere)):
                pass
        await one.end_of(await one.submit("anything"))


@pytest.mark.slow
async def test_no_run_is_started_while_attachments_cannot_be_reached(folder: Path) -> None:
    team = Team(folder)
    async with team.host("one") as one:
        dispatcher, states = one.services.dispatcher, one.services.supervisor
        (folder / "attachments").rename(folder / "away")
        async with asyncio.timeout(30):
            while dispatcher.may_start():
                await asyncio.to_thread(lambda: None)
        made = await one.submit("anything")
        [failure] = [each.failure for each in states.states if each.name == "shared storage"]
        assert "The attachments of this host" in failure
        assert (await one.run(made)).status == "queued"
        (folder / "away").rename(folder / "attachments")
        await one.end_of(made)


async def test_without_a_name_a_host_takes_every_session(folder: Path) -> None:
    team = Team(folder)
    async with team.host("one") as one:
        first = await one.submit("write")
        await one.end_of(first)
    async with team.host("two", LARKSPUR_DISPATCH__HOST="") as two:
        await two.end_of(await two.submit("anything", first.session_id))


@pytest.mark.parametrize("location", ["host", "archive"])
async def test_two_hosts_at_work_lose_no_change(folder: Path, location: str) -> None:
    team = Team(folder, LARKSPUR_WORKSPACES__LOCATION=location)
    append = Call("shell", {"command": "echo line >> log"})
    script = Rules([Reply(text="ok", when=When(results=1)), Reply(calls=[append])])
    async with team.host("one", script) as one, team.host("two", script) as two:
        sessions = [await each.submit("append") for each in (one, two)]
        made = [*sessions]
        for _ in range(3):
            for first, here in zip(sessions, (two, one), strict=True):
                made.append(await here.submit("append", first.session_id))
        for each in made:
            await one.end_of(each)
        for first in sessions:
            copies = [team.workspace(name, first) / "log" for name in ("one", "two")]
            lines = [copy.read_text().count("line") for copy in copies if copy.exists()]
            assert max(lines) == 4
            if location == "host":
                assert len(lines) == 1
