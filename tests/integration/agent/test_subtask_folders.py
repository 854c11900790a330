"""The folders of subtasks through the real chain: own folders, worktrees, two writers."""

from pathlib import Path
from typing import Any

import pytest

from internal.agent.app.runs.creation import Submitted
from internal.agent.domain.artifacts import Artifact, ArtifactFilter
from internal.agent.domain.errors import Conflict, Forbidden, NotFound
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.agent.domain.tasks import Run
from tests.support.agent_app import Core, open_agent
from tests.support.anthropic_server import Call, Reply, Rules, seen_in
from tests.support.git_repository import git, make_repository
from tests.support.sandboxes import sandbox_params
from tests.support.scripted_model import Fault, When

NO_GATES = {"LARKSPUR_AGENT__GATES": "off"}
WRITE = Call("write_file", {"path": "a.txt", "content": "by the subtask\n"})
COMMANDS = (
    "git log --format=%s && echo more >> b.txt && git add b.txt && git commit -qm Mine"
    " && git log --format=%s && cat b.txt"
)


def when(last_user: str, results: int = 0) -> When:
    return When(last_user=last_user, results=results)


def delegate(workspace: str, *prompts: str) -> Reply:
    tasks = [{"instruction": each, "workspace": workspace} for each in prompts]
    return Reply(calls=[Call("subagent", {"tasks": tasks})], when=when("start"))


def script(workspace: str, *calls: Call, end: Reply | None = None) -> Rules:
    """Return a script in which one subtask makes some calls."""
    steps = [Reply(calls=[call], when=when("work", step)) for step, call in enumerate(calls)]
    last = end or Reply("worked", when=when("work", len(calls)))
    return Rules([delegate(workspace, "work"), *steps, last, Reply("done", when=when("start", 1))])


async def run_to_end(here: Core, folder: Path | None = None) -> tuple[Submitted, list[Run]]:
    """Submit the task of the script; return it and the ended runs of its subtasks."""
    options: dict[str, Any] = {} if folder is None else {"workspace": str(folder)}
    made = await here.submit("start", **options)
    await here.end_of(made)
    tree = await here.services.gateway.queries.task_tree(made.task_id, LOCAL_OWNER)
    return made, [item.run for item in tree.subtasks]


def results(request: dict[str, Any]) -> list[str]:
    """Return the texts of all results of tools in a request."""
    blocks = [block for each in request["messages"] for block in each["content"]]
    given = [each["content"] for each in blocks if each["type"] == "tool_result"]
    return [each if isinstance(each, str) else each[0]["text"] for each in given]


async def artifacts(here: Core, run: Run) -> list[Artifact]:
    wanted = ArtifactFilter(task_id=run.task_id)
    return await here.services.gateway.queries.artifacts(LOCAL_OWNER, wanted)


async def content(here: Core, artifact: Artifact) -> str:
    return (await here.services.files.get(artifact.sha256)).decode()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "project", a_txt="first\n", b_txt="other\n")


@pytest.mark.parametrize("provider", sandbox_params("native", "bubblewrap", "landlock"))
@pytest.mark.first_rows(1)
async def test_a_subtask_with_a_folder_of_its_own_keeps_apart(home: Path, provider: str) -> None:
    command = "ls -a; cat input/* 2>/dev/null; echo made > output/report.txt; touch own.txt; ls .."
    rules = script(
        "own",
        Call("write_file", {"path": "notes.txt", "content": "mine"}),
        Call("shell", {"command": command}),
        Call("list_dir", {}),
        Call("read_file", {"path": "notes.txt"}),
    )
    environ = {**NO_GATES, "LARKSPUR_SANDBOX__PROVIDER": provider}
    async with open_agent(home, rules, environ) as here:
        made, [run] = await run_to_end(here)
        told = results(here.model.requests[-2])
        own = home / "task-folders" / f"{made.session_id}.{run.task_id}"
        assert own.stat().st_mode & 0o777 == 0o700
        assert sorted(path.name for path in own.iterdir()) == [
            *("input", "notes.txt", "output", "own.txt")
        ]
        assert not (home / "workspaces" / made.session_id / "notes.txt").exists()
        assert "own.txt" in told[2]
        assert told[3] == "mine"
        assert [each.name for each in await artifacts(here, run)] == ["report.txt"]
        await here.services.gateway.delete_session(made.session_id, LOCAL_OWNER)
    assert [*(home / "task-folders").iterdir()] == []


@pytest.mark.parametrize("provider", sandbox_params("native", "bubblewrap", "landlock"))
@pytest.mark.first_rows(1)
async def test_a_worktree_is_worked_in_shown_and_applied(
    home: Path, repository: Path, provider: str
) -> None:
    rules = script("worktree", WRITE, Call("shell", {"command": COMMANDS}))
    environ = {**NO_GATES, "LARKSPUR_SANDBOX__PROVIDER": provider}
    (repository / "b.txt").write_text("not committed\n")
    async with open_agent(home, rules, environ) as here:
        made, [run] = await run_to_end(here, repository)
        assert run.status == "completed"
        assert "First\nMine\nFirst\nother\nmore" in seen_in(here.model.requests[-2]).last_result
        branch = f"larkspur/{run.task_id[-8:]}"
        assert git(repository, "show", f"{branch}:a.txt") == "by the subtask"
        assert (repository / "a.txt").read_text() == "first\n"
        [diff] = await artifacts(here, run)
        assert (diff.name, diff.maker, diff.type) == ("task-1.diff", "worktree", "code")
        assert diff.caption.startswith("2 files changed since commit ")
        assert f"on the branch {branch}. To apply: larkspur tasks apply " in diff.caption
        assert "-first\n+by the subtask\n" in await content(here, diff)

        (repository / "b.txt").write_text("other\n")
        worktree = home / "worktrees" / f"{made.session_id}.{run.task_id}"
        assert worktree.is_dir()
        applied = await here.services.gateway.worktrees.apply(run.task_id, LOCAL_OWNER, "web")
        assert applied.folder == str(repository)
        assert applied.paths == ("a.txt", "b.txt")
        assert (repository / "a.txt").read_text() == "by the subtask\n"
        assert (repository / "b.txt").read_text() == "other\nmore\n"
        assert [*worktree.parent.iterdir()] == []
        assert git(repository, "branch", "--list", "larkspur/*") == ""
        [entry, *_] = await here.services.gateway.queries.audit_entries(LOCAL_OWNER)
        assert (entry.action, entry.target) == ("task.applied", run.task_id)
        with pytest.raises(Conflict, match="already"):
            await here.services.gateway.worktrees.apply(run.task_id, LOCAL_OWNER, "web")


async def test_what_a_failed_subtask_changed_is_kept(home: Path, repository: Path) -> None:
    failing = Reply(fault=Fault("status", status=400), when=when("work", 1))
    async with open_agent(home, script("worktree", WRITE, end=failing), NO_GATES) as here:
        _, [run] = await run_to_end(here, repository)
        assert run.status == "failed"
        assert "+by the subtask" in await content(here, (await artifacts(here, run))[0])


async def test_what_a_stopped_subtask_changed_is_kept(home: Path, repository: Path) -> None:
    held = Reply("never", hold="go", when=when("work", 1))
    async with open_agent(home, script("worktree", WRITE, end=held), NO_GATES) as here:
        gateway = here.services.gateway
        made = await here.submit("start", workspace=str(repository))
        await here.model.until_open(1)
        [item] = (await gateway.queries.task_tree(made.task_id, LOCAL_OWNER)).subtasks
        with pytest.raises(Conflict, match="has not ended"):
            await gateway.worktrees.apply(item.task.id, LOCAL_OWNER, "web")
        await gateway.stop(item.task.id, LOCAL_OWNER, "web")
        await here.end_of(made)
        [item] = (await gateway.queries.task_tree(made.task_id, LOCAL_OWNER)).subtasks
        assert item.run.status == "cancelled"
        assert "+by the subtask" in await content(here, (await artifacts(here, item.run))[0])


async def test_a_deleted_session_takes_its_worktrees_along(home: Path, repository: Path) -> None:
    async with open_agent(home, script("worktree", WRITE), NO_GATES) as here:
        made, _ = await run_to_end(here, repository)
        assert git(repository, "branch", "--list", "larkspur/*")
        await here.services.gateway.delete_session(made.session_id, LOCAL_OWNER)
    assert git(repository, "branch", "--list", "larkspur/*") == ""
    assert [*(home / "worktrees").iterdir()] == []
    assert (repository / "a.txt").read_text() == "first\n"


async def test_only_operators_apply_changes_and_only_where_there_are_some(
    home: Path, repository: Path
) -> None:
    reader = Principal(LOCAL_OWNER.id, roles=frozenset({"talk"}))
    async with open_agent(home, script("worktree"), NO_GATES) as here:
        _, [run] = await run_to_end(here, repository)
        apply = here.services.gateway.worktrees.apply
        with pytest.raises(NotFound, match="has changed nothing in a worktree"):
            await apply(run.task_id, LOCAL_OWNER, "web")
        with pytest.raises(Forbidden, match="Only operators"):
            await apply(run.task_id, reader, "web")
        with pytest.raises(NotFound):
            await apply(run.task_id, Principal("web:eve", roles=frozenset({"talk"})), "web")


async def test_a_folder_without_a_repository_fails_with_the_reason(
    home: Path, tmp_path: Path
) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    async with open_agent(home, script("worktree", WRITE), NO_GATES) as here:
        _, runs = await run_to_end(here, plain)
        told = seen_in(here.model.requests[-1]).last_result
    assert "is not a git repository" in told
    assert runs == []


async def test_changes_that_cannot_be_committed_are_told(home: Path, repository: Path) -> None:
    rules = script("worktree", WRITE, Call("shell", {"command": f"rm -rf {repository}/.git"}))
    async with open_agent(home, rules, NO_GATES) as here:
        _, [run] = await run_to_end(here, repository)
        assert run.status == "completed"
        [diff] = await artifacts(here, run)
        assert diff.caption.startswith("The changes in the worktree cannot be committed: ")
        with pytest.raises(Conflict, match="is missing or was too large"):
            await here.services.gateway.worktrees.apply(run.task_id, LOCAL_OWNER, "web")


@pytest.mark.needs("namespaces")
async def test_a_worktree_cannot_be_turned_against_the_repository(
    home: Path, repository: Path
) -> None:
    look = f"ls ..; cat ../*.json; ls {repository}; ls {repository}/.git"
    change = f"echo x > {repository}/c.txt; touch {repository}/.git/objects/x; echo {{}} > ../x"
    rules = script(
        "worktree",
        Call("shell", {"command": f"{look}; {change}; echo x > .git/config"}),
        Call("write_file", {"path": ".git/config", "content": "x"}),
    )
    environ = {**NO_GATES, "LARKSPUR_SANDBOX__PROVIDER": "bubblewrap"}
    async with open_agent(home, rules, environ) as here:
        made, [run] = await run_to_end(here, repository)
        told = results(here.model.requests[-2])
    lines = [line for line in told[0].splitlines() if not line.startswith(("bash:", "sh:"))]
    assert lines[0] == f"{made.session_id}.{run.task_id}"
    assert "cat: '../*.json': No such file or directory" in lines
    assert "objects" in lines
    assert {"a.txt", "config", "HEAD"}.isdisjoint(lines)
    assert "Read-only file system" in told[0]
    assert "is protected and may not be changed" in told[1]
    assert not (repository / "c.txt").exists()
    assert "x" not in [path.name for path in (repository / ".git" / "objects").iterdir()]


async def test_two_subtasks_that_edit_one_file_lose_no_change(home: Path, tmp_path: Path) -> None:
    folder, count = tmp_path / "folder", 8
    folder.mkdir()
    lines = [f"{who}{number}" for who in ("left", "right") for number in range(count)]
    (folder / "list.txt").write_text("\n".join(f"{line}: old" for line in lines) + "\n")

    def edits(who: str) -> list[Call]:
        return [
            Call(
                "edit_file",
                {
                    "path": "list.txt",
                    "old_string": f"{who}{number}: old",
                    "new_string": f"{who}{number}: new",
                },
            )
            for number in range(count)
        ]

    rules: list[Any] = [delegate("shared", "left side", "right side")]
    for who in ("left", "right"):
        rules.append(Reply(calls=edits(who), when=when(f"{who} side")))
        rules.append(Reply("edited", when=when(f"{who} side", count)))
    rules.append(Reply("done", when=when("start", 1)))
    async with open_agent(home, Rules(rules), NO_GATES) as here:
        _, runs = await run_to_end(here, folder)
    assert [run.status for run in runs] == ["completed"] * 2
    assert (folder / "list.txt").read_text() == "\n".join(f"{each}: new" for each in lines) + "\n"


async def test_files_of_the_creators_folder_are_handed_over(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "data.txt").write_text("forty-two")
    (folder / "link").symlink_to(tmp_path)
    tasks = [{"instruction": "work", "workspace": "own", "files": ["data.txt"]}]
    outside = [{"instruction": "work", "files": ["link/secret.txt"]}]
    (tmp_path / "secret.txt").write_text("SECRET")
    rules = Rules(
        [
            Reply(calls=[Call("subagent", {"tasks": outside})], when=when("start", 0)),
            Reply(calls=[Call("subagent", {"tasks": tasks})], when=when("start", 1)),
            Reply("done", when=when("start", 2)),
            Reply(calls=[Call("shell", {"command": "cat input/*"})], when=when("work", 0)),
            Reply("worked", when=when("work", 1)),
        ]
    )
    async with open_agent(home, rules, NO_GATES) as here:
        _, [run] = await run_to_end(here, folder)
        refused = results(here.model.requests[1])[0]
        read = results(here.model.requests[-2])[0]
    assert run.status == "completed"
    assert "leads outside the workspace" in refused
    assert read.startswith("forty-two")


async def test_the_creator_is_told_where_a_worktree_starts(home: Path, repository: Path) -> None:
    create = Call("create_task", {"instruction": "work", "workspace": "worktree"})
    rules = Rules(
        [
            Reply(calls=[create], when=when("start", 0)),
            Reply("started", when=when("start", 1)),
            Reply("worked", when=when("work")),
            Reply("told"),
        ]
    )
    async with open_agent(home, rules, NO_GATES) as here:
        made = await here.submit("start", workspace=str(repository))
        await here.end_of(made)
        texts = [text for each in here.model.requests for text in results(each)]
    assert any("starts at HEAD: uncommitted changes are not in it" in text for text in texts)
