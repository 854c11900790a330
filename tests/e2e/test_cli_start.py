"""The command as a process: imports, help, usage errors, `doctor`, `config`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from larkspur.version import VERSION
from tests import ROOT
from tests.support.terminal import start_terminal

LARKSPUR = Path(sys.executable).with_name("larkspur")
HEAVY = {
    "msgspec",
    "pydantic",
    "pydantic_core",
    "asyncio",
    "anthropic",
    "yaml",
    "sqlite3",
    "dataclasses",
}

RARE = {
    "yaml",
    "urllib.request",
    "tomllib",
    "internal.channels.chat.channel",
    "internal.llm.offline.conversation",
    "internal.storage.maintenance",
    "larkspur.administration",
}


def larkspur(
    *argv: str | bytes, environ: dict[str, str], cwd: Path, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [LARKSPUR, *argv], env=environ, cwd=cwd, input=stdin, capture_output=True, check=False
    )


def imported_by(argv: list[str], environ: dict[str, str], cwd: Path) -> set[str]:
    """Run the command in a fresh interpreter and return the modules it had loaded at its end."""
    program = (
        "import atexit, sys\n"
        "before = set(sys.modules)\n"
        "atexit.register(lambda: sys.stderr.write('\\n' + ' '.join(set(sys.modules) - before)))\n"
        "from larkspur.main import main\n"
        f"sys.argv = ['larkspur', *{argv!r}]\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environ,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return set(done.stderr.decode().rpartition("\n")[2].split())


def test_version_is_that_of_the_package(environ: dict[str, str], work: Path) -> None:
    done = larkspur("--version", environ=environ, cwd=work)
    assert (done.returncode, done.stdout) == (0, f"larkspur {VERSION}\n".encode())
    assert f'\nversion = "{VERSION}"\n' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_the_process_ends_while_a_thread_runs(environ: dict[str, str], work: Path) -> None:
    program = (
        "import sys, threading\n"
        "from larkspur.main import run\n"
        "threading.Thread(target=threading.Event().wait).start()\n"
        "sys.argv = ['larkspur', '--help']\n"
        "run()\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, env=environ, cwd=work, capture_output=True, check=True, timeout=60
    )
    assert (done.stdout, done.stderr) == (larkspur("--help", environ=environ, cwd=work).stdout, b"")


def test_version_imports_almost_nothing(environ: dict[str, str], work: Path) -> None:
    loaded = imported_by(["--version"], environ, work)
    assert {"larkspur.main", "larkspur.version"} <= loaded
    assert loaded.isdisjoint({*HEAVY, "argparse", "typing", "json", "http.client", "pathlib"})


def test_help_imports_only_the_standard_library(environ: dict[str, str], work: Path) -> None:
    loaded = imported_by(["--help"], environ, work)
    assert "argparse" in loaded
    assert loaded.isdisjoint({*HEAVY, "http.client"})


@pytest.mark.slow
def test_serve_is_ready_before_it_imports_what_only_some_runs_need(
    environ: dict[str, str], home: Path, work: Path
) -> None:
    names = imported_by_serve(environ, work)
    before = names[: names.index(str(home / "gateway.json"))]
    assert "internal.channels.web.server" in before
    assert RARE & {*before} == set()


@pytest.mark.slow
def test_serve_loads_no_plugin_of_pydantic(environ: dict[str, str], work: Path) -> None:
    packages = work / "packages"
    (packages / "other-1.dist-info").mkdir(parents=True)
    (packages / "other-1.dist-info" / "entry_points.txt").write_text("[pydantic]\nx = other:x\n")
    (packages / "other.py").write_text("x = None\n")
    names = imported_by_serve({**environ, "PYTHONPATH": str(packages)}, work)
    assert "pydantic" in names
    assert "other" not in names


def imported_by_serve(environ: dict[str, str], work: Path) -> list[str]:
    """Return the names of imports and of renamed files of a gateway, in their order."""
    program = (
        "import sys\n"
        "seen = []\n"
        "def audit(event, arguments):\n"
        "    if event == 'import': seen.append(arguments[0])\n"
        "    if event == 'os.rename': seen.append(str(arguments[1]))\n"
        "sys.addaudithook(audit)\n"
        "from larkspur.main import main\n"
        "sys.argv = ['larkspur', 'serve', '--port', '0']\n"
        "code = main()\n"
        "print(*seen, sep='\\n')\n"
        "sys.exit(code)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=environ,
        cwd=work,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        assert any(b" is at http" in line for line in process.stderr)
        process.terminate()
        output, _ = process.communicate()
    return output.decode().splitlines()


@pytest.mark.parametrize("argv", [["serve", "--help"], ["doctor", "-h"], ["config", "--help"]])
def test_every_command_has_help(argv: list[str], environ: dict[str, str], work: Path) -> None:
    done = larkspur(*argv, environ=environ, cwd=work)
    assert done.returncode == 0
    assert f"usage: larkspur {argv[0]}".encode() in done.stdout


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ([], "not a terminal"),
        (["list the files"], 'larkspur -p "list the files"'),
        (["-p"], "The task is empty"),
        (["-p", "x", "--fork"], "--fork"),
        (["-p", "x", "-f", "no-such-file"], "no-such-file does not exist"),
        (["-p", "x", "y"], "Quote the whole prompt"),
        (["-p", "x", "--detach"], "larkspur serve"),
        (["-p", "x", "--server", "ftp://127.0.0.1"], "is not a URL"),
        (["-p", "x", "--server", "http://example.org"], "unencrypted"),
        (["-p", "x", "-c"], "no session to continue"),
        (["-p", "x", "-r", "session-unknown"], "session-unknown"),
        (["-p", "x", "--profile", "nobody"], "nobody"),
        (["-p", "x", "--max-cost", "1", "--model", "no-price"], "no-price"),
        (["-p", "x", "--allow", "((("], "((("),
        (["-p", "x", "--config", "no-such.yaml"], "no-such.yaml"),
        (["config"], "action"),
        ([b"-p", b"\xff", b"--\xfe"], "unrecognized arguments: --"),
    ],
)
@pytest.mark.first_rows(4)
def test_usage_error_is_one_sentence(
    argv: list[str | bytes], sentence: str, environ: dict[str, str], home: Path, work: Path
) -> None:
    (home / "token").write_text("t" * 64)
    (home / "token").chmod(0o600)
    done = larkspur(*argv, environ=environ, cwd=work)
    told = done.stderr.decode()
    assert sentence in told
    assert "Traceback" not in told
    assert done.stdout == b""
    assert done.returncode in {1, 2, 3}


@pytest.mark.slow
def test_invalid_setting_exits_with_3(environ: dict[str, str], home: Path, work: Path) -> None:
    (home / "config.yaml").write_text("llm:\n  modle: x\n")
    done = larkspur("-p", "hello", environ=environ, cwd=work)
    assert done.returncode == 3
    assert b"config.yaml:2" in done.stderr
    assert b"Traceback" not in done.stderr


def test_missing_key_exits_with_3(environ: dict[str, str], work: Path) -> None:
    environ["LARKSPUR_LLM__PROVIDER"] = "anthropic"
    done = larkspur("-p", "hello", environ=environ, cwd=work)
    assert done.returncode == 3
    assert b"ANTHROPIC_API_KEY" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_closed_standard_output_is_not_reported(environ: dict[str, str], work: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "{LARKSPUR}" -p hello >&-'],
        env=environ,
        cwd=work,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (141, b"")


def test_closed_pipe_of_the_help_is_not_reported(environ: dict[str, str], work: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [LARKSPUR, "--help"],
        env=environ,
        cwd=work,
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.slow
def test_waiting_for_standard_input_is_reported(environ: dict[str, str], work: Path) -> None:
    with subprocess.Popen(
        [LARKSPUR, "-p", "what is 6*7"],
        env=environ,
        cwd=work,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        assert b"Waiting for standard input" in process.stderr.readline()
        out, err = process.communicate()
    assert (process.returncode, b"42" in out) == (0, True)
    assert b"using the offline demo model" in err


def test_schema_is_printed(environ: dict[str, str], work: Path) -> None:
    done = larkspur("events", "schema", environ=environ, cwd=work)
    assert "WorkflowEventEnvelope" in json.loads(done.stdout)["$defs"]
    page = larkspur("events", "schema", "--markdown", environ=environ, cwd=work)
    assert page.stdout.startswith(b"# Events\n")


def test_settings_are_shown_without_secrets(
    environ: dict[str, str], home: Path, work: Path
) -> None:
    environ |= {"ANTHROPIC_API_KEY": "canary-secret"}
    done = larkspur("config", "show", environ=environ, cwd=work)
    assert b"llm.api_key: set  # environment ANTHROPIC_API_KEY\n" in done.stdout
    assert b"canary" not in done.stdout + done.stderr
    path = larkspur("config", "path", environ=environ, cwd=work)
    assert path.stdout == f"{home}/config.yaml\n".encode()


def test_doctor_accepts_a_new_home(environ: dict[str, str], home: Path, work: Path) -> None:
    done = larkspur("doctor", "--json", environ=environ, cwd=work)
    checks = {check["name"]: check for check in json.loads(done.stdout)}
    assert done.returncode == 0
    assert not [check for check in checks.values() if check["state"] == "fail"]
    assert "not isolated" in checks["sandbox"]["sentence"]
    assert "offline demo model" in checks["model"]["sentence"]
    assert list(home.iterdir()) == []  # it changes nothing


def test_doctor_reports_problems(environ: dict[str, str], home: Path, work: Path) -> None:
    (home / "token").write_text("t" * 64)
    (home / "token").chmod(0o644)
    (home / "larkspur.db").write_bytes(b"not a database" * 100)
    home.chmod(0o755)
    environ["LARKSPUR_LLM__PROVIDER"] = "anthropic"
    done = larkspur("doctor", environ=environ, cwd=work)
    lines = {line.split()[1]: line.split()[0] for line in done.stdout.decode().splitlines()}
    assert done.returncode == 3
    assert (lines["token:"], lines["database:"], lines["model:"]) == ("fail", "fail", "fail")
    assert lines["home:"] == "warn"


@pytest.mark.slow
def test_doctor_reports_invalid_settings(environ: dict[str, str], home: Path, work: Path) -> None:
    (home / "config.yaml").write_text("server: [\n")
    done = larkspur("doctor", environ=environ, cwd=work)
    assert done.returncode == 3
    assert b"fail  settings: " in done.stdout
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("answer", "seen", "code"),
    [
        ("y", "completed  hello", 0),
        pytest.param("", "completed  hello", 0, marks=pytest.mark.slow),
        pytest.param("what?", "", 2, marks=pytest.mark.slow),
        pytest.param("\x04", "", 2, marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
async def test_mistyped_command_is_confirmed_on_a_terminal(
    answer: str, seen: str, code: int, environ: dict[str, str], home: Path, work: Path
) -> None:
    larkspur("-p", "hello", environ=environ, cwd=work)
    async with start_terminal([LARKSPUR, "taks"], environ, work) as tty:
        await tty.wait_for("Did you mean `larkspur tasks`?", "[n]")
        tty.type(answer if answer == "\x04" else f"{answer}\r")
        assert await tty.wait_exit() == code
        assert seen in tty.screen.text
    tasks = json.loads(larkspur("tasks", "--json", environ=environ, cwd=work).stdout)
    assert [task["task"] for task in tasks] == ["hello"]


async def test_mistyped_command_can_start_a_session(
    environ: dict[str, str], home: Path, work: Path
) -> None:
    environ["LARKSPUR_LLM__PROVIDER"] = "offline"  # else a key is asked for first
    async with start_terminal([LARKSPUR, "taks"], environ, work) as tty:
        await tty.wait_for("Did you mean `larkspur tasks`?", "[n]")
        tty.type("n\r")
        await tty.wait_for("> taks", "offline demo model")
