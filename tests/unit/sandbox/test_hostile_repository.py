"""Programs in a hostile repository run nothing that its files name."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from internal.agent.domain.ids import SessionId
from internal.agent.ports.sandbox import SandboxCommand
from internal.sandbox.environment import DEFAULT_PATH
from internal.sandbox.native import NativeSandbox
from internal.sandbox.workspaces import SessionFolders

A, B = SessionId("session-a"), SessionId("session-b")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    return folder


@pytest.fixture
def sandbox(tmp_path: Path) -> NativeSandbox:
    return NativeSandbox(SessionFolders(tmp_path / "homes"))


async def run(sandbox: NativeSandbox, folder: Path, script: str, session: SessionId = A) -> str:
    output = bytearray()
    command = SandboxCommand(("bash", "-c", script), str(folder), 60.0, session)
    await sandbox.run(command, output.extend)
    return output.decode()


def program(folder: Path, name: str) -> str:
    """Write a program that leaves a mark beside the folder, and return its path."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\ntouch '{folder.parent}/ran-{name}'\n")
    path.chmod(0o755)
    return str(path)


def marks(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.parent.glob("ran-*"))


def files(folder: Path) -> set[Path]:
    return set(folder.rglob("*")) - set((folder / "sub").rglob("*")) - {folder / "sub"}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def python_version() -> str:
    found = shutil.which("python3", path=DEFAULT_PATH) or sys.executable
    version = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.run(
        [found, "-c", version], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def hostile(repository: Path) -> Path:
    """Write files that programs read in the home directory; each of them names a program to run."""
    mark = f"touch '{repository.parent}/ran-%s'"
    python = f"import os; open({str(repository.parent)!r} + '/ran-%s', 'w')\n"
    site = f".local/lib/python{python_version()}/site-packages"
    script = program(repository, "evil")
    git = f"[core]\n fsmonitor = {script}\n pager = {script}\n[diff]\n external = {script}\n"
    contents = {
        ".bashrc": mark % "bashrc",
        ".bash_profile": mark % "bash_profile",
        ".profile": mark % "profile",
        f"{site}/evil.pth": python % "pth",
        f"{site}/usercustomize.py": python % "usercustomize",
        f"{site}/sitecustomize.py": python % "sitecustomize",
        ".pythonrc": python % "pythonrc",
        ".curlrc": f"output = {repository.parent}/ran-curlrc\nurl = file://{script}\n",
        ".config/curlrc": f"output = {repository.parent}/ran-config-curlrc\nurl = file://{script}\n",
        ".wgetrc": f"output_document = {repository.parent}/ran-wgetrc\n",
        ".gitconfig": git,
        ".config/git/config": git,
        ".config/pip/pip.conf": f"[global]\nlog = {repository.parent}/ran-pip-conf\n",
        ".pip/pip.conf": f"[global]\nlog = {repository.parent}/ran-pip-old-conf\n",
        ".config/npm/npmrc": f"logs-dir={repository.parent}/ran-npm-logs\n",
        ".aws/config": f"[default]\ncredential_process = {script}\n",
        ".ssh/config": f"Host *\n ProxyCommand {script}\n",
        ".gnupg/gpg.conf": f"log-file {repository.parent}/ran-gpg\n",
        ".inputrc": "",
        ".lesskey": "",
    }
    for name, content in contents.items():
        write(repository / name, content)
    return repository


COMMANDS = {
    "bash": "bash -c true; bash -ic true; sh -c true; bash -lc true",
    "python3": "python3 -c pass; python3 -m json.tool </dev/null; python3 -im this </dev/null",
    "pip": "pip list; pip config list; python3 -m pip --version",
    "curl": "curl -s file:///dev/null; curl --version",
    "wget": "wget -q -T 1 -t 1 http://127.0.0.1:1/",
    "git": "git init -q sub; cd sub && git status && git log; git diff; git config --list",
    "npm": "npm --version; npm ls; npm config list",
    "node": "node -e 0",
    "perl": "perl -e 1",
    "gpg": "gpg --list-keys",
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.needs(f"program:{name}")) for name in COMMANDS],
)
@pytest.mark.first_rows(4)
async def test_no_file_of_the_workspace_configures_a_program(
    sandbox: NativeSandbox, hostile: Path, name: str
) -> None:
    before = files(hostile)
    await run(sandbox, hostile, COMMANDS[name])
    assert marks(hostile) == []
    assert files(hostile) == before


async def test_the_home_of_a_session_starts_empty_and_is_kept_for_its_commands(
    sandbox: NativeSandbox, repository: Path, tmp_path: Path
) -> None:
    assert await run(sandbox, repository, 'ls -A "$HOME"; stat -c %a "$HOME"') == "700\n"
    await run(sandbox, repository, 'mkdir -p "$XDG_CACHE_HOME"; echo mine > "$XDG_CACHE_HOME/file"')
    assert await run(sandbox, repository, 'cat "$HOME/.cache/file"') == "mine\n"
    assert await run(sandbox, repository, 'ls -A "$HOME"', B) == ""
    assert files(tmp_path / "homes") >= {tmp_path / "homes" / A, tmp_path / "homes" / B}
    assert files(repository) == set()


async def test_the_home_of_a_session_is_removed_with_it(
    sandbox: NativeSandbox, repository: Path, tmp_path: Path
) -> None:
    await run(sandbox, repository, 'mkdir "$HOME/a"; touch "$HOME/a/b"; chmod 0 "$HOME/a"')
    await SessionFolders(tmp_path / "homes").remove(A)
    assert files(tmp_path / "homes") == set()


KEYS = (
    "core.fsmonitor",
    "core.pager",
    "core.editor",
    "sequence.editor",
    "core.sshCommand",
    "core.askPass",
    "core.gitProxy",
    "core.alternateRefsCommand",
    "credential.helper",
    "credential.https://127.0.0.1.helper",
    "gpg.program",
    "gpg.openpgp.program",
    "gpg.x509.program",
    "gpg.ssh.program",
    "gpg.ssh.defaultKeyCommand",
    "interactive.diffFilter",
    "pager.diff",
    "pager.log",
)
"""Keys that name a program and that the environment overrides."""
SWITCHES = (
    "commit.gpgSign=true",
    "tag.gpgSign=true",
    "log.showSignature=true",
    "user.name=n",
    "user.email=e@x",
    "protocol.ext.allow=always",
)
GIT_COMMANDS = (
    *("status", "diff", "log -p", "show", "blame f", "commit -am two", "commit --amend"),
    *("tag -a -m t v1", "rebase -i --root", "add -A", "stash", "stash pop", "merge side"),
    *("branch --edit-description", "log --show-signature", "log --format=%G?", "grep a"),
    *("push --dry-run ssh://127.0.0.1:1/x", "ls-remote git://127.0.0.1:1/x", "gc --auto"),
    *("ls-remote https://127.0.0.1:1/x", "ls-remote 'ext::touch ran'", "fetch --all"),
    "push ../other HEAD:refs/heads/x",
)


async def test_git_runs_no_program_that_the_environment_can_override(
    sandbox: NativeSandbox, repository: Path, tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    evil = {key: program(programs, key.replace("/", "-")) for key in KEYS}
    for name in ("pre-commit", "post-checkout", "commit-msg", "pre-push", "reference-transaction"):
        program(programs, name)
    configure = "; ".join(
        [
            *(f"git config '{key}' '{path}'" for key, path in evil.items()),
            *(f"git config {switch.replace('=', ' ')}" for switch in SWITCHES),
            f"git config core.hooksPath '{programs}'",
        ]
    )
    git = "git -c commit.gpgSign=false -c user.name=n -c user.email=e"
    prepare = (
        "git init -q -b main . && echo a > f && git add f"
        f" && {git} commit -qm one && git branch side && git init -q --bare ../other && {configure}"
    )
    await run(sandbox, repository, prepare)
    assert marks(repository) == []
    script = "; ".join(f"echo b >> f; git {command} </dev/null" for command in GIT_COMMANDS)
    output = await run(sandbox, repository, script)
    assert "+b" in output
    assert marks(repository) == []
    assert not (repository / "ran").exists()  # by the transport ext::


BARE = """
[core]
	repositoryformatversion = 0
	bare = false
	worktree = .
	fsmonitor = {evil}
	hooksPath = {folder}
	pager = {evil}
	editor = {evil}
	sshCommand = {evil}
[diff]
	external = {evil}
[diff "x"]
	textconv = {evil}
	command = {evil}
[filter "x"]
	clean = {evil}
	smudge = {evil}
	process = {evil}
[alias]
	st = !{evil}
	lg = !{evil}
"""


@pytest.fixture(params=[".", "docs"])
def bare(request: pytest.FixtureRequest, repository: Path, tmp_path: Path) -> Path:
    """A hostile bare repository: a folder with the files HEAD, config, objects and refs."""
    folder = repository / str(request.param)
    evil = program(tmp_path / "programs", "evil")
    write(folder / "f", "a\n")
    for command in ("init -q -b main", "add .", "-c user.name=n -c user.email=e commit -qm one"):
        subprocess.run(["git", *command.split()], cwd=folder, check=True)
    for name in ("HEAD", "objects", "refs", "index"):
        (folder / ".git" / name).rename(folder / name)
    shutil.rmtree(folder / ".git")
    write(folder / "config", BARE.format(evil=evil, folder=tmp_path / "programs"))
    write(folder / ".gitattributes", "* filter=x diff=x\n")
    write(folder / "f", "b\n")
    return folder


async def test_git_uses_no_bare_repository_of_the_workspace(
    sandbox: NativeSandbox, repository: Path, bare: Path
) -> None:
    commands = ("diff", "status", "log -p", "show", "add -A", "st", "lg", "commit -am x", "stash")
    output = await run(sandbox, bare, "; ".join(f"git {command}" for command in commands))
    assert "safe.bareRepository" in output
    assert marks(repository) == []
