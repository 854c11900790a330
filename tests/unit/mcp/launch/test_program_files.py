"""The files of programs, found in real folders."""

from pathlib import Path

import pytest

from internal.mcp.launch.program_files import ProgramFiles

PATH = "/usr/bin:/bin"


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def link(path: Path, target: str | Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    return path


class Machine:
    """The home folder of a person, with programs in `~/.local/bin`."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.programs = home / ".local" / "bin"

    def files(self, *readable: Path, own_path: str = "") -> ProgramFiles:
        own_path = own_path or f"{self.programs}:{PATH}"
        return ProgramFiles(map(str, readable), path=PATH, own_path=own_path, home=self.home)

    def python(self, version: str = "cpython-3.12.7") -> Path:
        """Create an interpreter that uv manages; return its installation."""
        prefix = self.home / ".local" / "share" / "uv" / "python" / version
        write(prefix / "bin" / "python3.12", "\x7fELF")
        write(prefix / "lib" / "python3.12" / "os.py")
        return prefix

    def environment(self, prefix: Path, interpreter: Path, base: Path) -> Path:
        """Create a virtual environment with a program; return the program."""
        link(prefix / "bin" / "python", interpreter)
        write(prefix / "pyvenv.cfg", f"home = {base}/bin\nversion_info = 3.12.7\n")
        write(prefix / "lib" / "python3.12" / "site-packages" / "server.py")
        return write(prefix / "bin" / "server", f"#!{prefix}/bin/python\n")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "ada")


def test_a_program_of_the_machine_needs_nothing(machine: Machine) -> None:
    files = machine.files()
    assert (files.add_program("sh"), files.added, files.missing) == ("sh", (), [])
    assert (files.add_program("/usr/bin/env"), files.added) == ("/usr/bin/env", ())


def test_a_program_that_is_nowhere_is_missing(machine: Machine) -> None:
    files = machine.files()
    assert (files.add_program("no-such"), files.missing) == ("no-such", ["no-such"])


def test_a_program_in_the_home_is_named_by_its_path(machine: Machine) -> None:
    program = write(machine.programs / "server", "#!/bin/sh\n")
    files = machine.files()
    assert (files.add_program("server"), files.added) == (str(program), (str(program),))
    assert files.path == PATH


def test_a_readable_folder_is_not_added_again(machine: Machine) -> None:
    write(machine.programs / "server", "#!/bin/sh\n")
    files = machine.files(machine.programs)
    files.add_program("server")
    assert files.added == ()


def test_a_downloader_comes_with_the_program_that_it_executes(machine: Machine) -> None:
    uv, uvx = (write(machine.programs / name, "\x7fELF") for name in ("uv", "uvx"))
    files = machine.files()
    files.add_program("uvx")
    assert files.added == (str(uv), str(uvx))


def test_a_tool_of_uv_comes_with_its_environment_and_interpreter(machine: Machine) -> None:
    python = machine.python()
    # the environment names the interpreter by a link that does not have the last number
    minor = link(python.with_name("cpython-3.12"), python)
    tool = machine.home / ".local" / "share" / "uv" / "tools" / "server"
    program = machine.environment(tool, minor / "bin" / "python3.12", python)
    shown = link(machine.programs / "server", program)
    files = machine.files()
    assert files.add_program("server") == str(shown)
    assert files.added == tuple(sorted(map(str, (shown, minor, python, tool))))


def test_links_to_a_cache_and_folders_of_pth_files_are_followed(machine: Machine) -> None:
    tool = machine.home / "venv"
    program = machine.environment(tool, Path("/usr/bin/python3"), Path("/usr"))
    packages = tool / "lib" / "python3.12" / "site-packages"
    cache = machine.home / ".cache" / "uv"
    write(cache / "CACHEDIR.TAG")
    link(packages / "other.py", write(cache / "archive" / "x" / "other.py"))
    source = machine.home / "sources"
    source.mkdir()
    write(packages / "editable.pth", f"import site\n{source}\n/no/such/folder\n")
    files = machine.files()
    files.add_program(str(program))
    assert files.added == tuple(map(str, (cache, source, tool)))


def test_an_interpreter_with_a_long_path_is_found_in_the_second_line(machine: Machine) -> None:
    python = machine.python("cpython 3.12.7")
    interpreter = python / "bin" / "python3.12"
    text = f"#!/bin/sh\n'''exec' \"{interpreter}\" \"$0\" \"$@\"\n' '''\n"
    program = write(machine.programs / "server", text)
    files = machine.files()
    files.add_program("server")
    assert files.added == (str(program), str(python))


def test_a_program_of_another_node_gets_its_installation_and_path(machine: Machine) -> None:
    node = machine.home / ".nvm" / "versions" / "v24"
    write(node / "bin" / "node", "\x7fELF")
    script = write(node / "lib" / "node_modules" / "npm" / "bin" / "npx-cli.js")
    script.write_text("#!/usr/bin/env our-node\n")
    link(node / "bin" / "npx", "../lib/node_modules/npm/bin/npx-cli.js")
    write(node / "bin" / "our-node", "\x7fELF")
    files = machine.files(own_path=f"{node / 'bin'}:{PATH}")
    files.add_program(str(node / "bin" / "npx"))
    assert files.added == (str(node),)
    assert files.path == f"{node / 'bin'}:{PATH}"


def test_a_program_of_a_node_package_comes_with_all_packages(machine: Machine) -> None:
    packages = machine.home / "mcp" / "node_modules"
    write(packages / "server" / "dist" / "index.js", "#!/usr/bin/env sh\n")
    program = link(packages / ".bin" / "server", "../server/dist/index.js")
    files = machine.files()
    assert files.add_program(str(program)) == str(program)
    assert files.added == (str(packages),)


def test_a_link_to_a_node_package_is_replaced_by_its_target(machine: Machine) -> None:
    script = write(machine.home / "own" / "node_modules" / "server" / "x.js", "#!/bin/sh\n")
    link(machine.programs / "server", script)
    files = machine.files()
    assert files.add_program("server") == str(script)
    assert files.added == (str(script.parent.parent),)


def test_a_program_with_shared_libraries_comes_with_them(machine: Machine) -> None:
    prefix = machine.home / "conda"
    program = write(prefix / "bin" / "tool", "\x7fELF")
    write(prefix / "lib" / "libz.so.1")
    write(prefix / "lib" / "python3.12" / "os.py")
    files = machine.files()
    files.add_program(str(program))
    assert files.added == (str(prefix),)


def test_an_argument_is_readable_and_a_script_with_its_folder(machine: Machine) -> None:
    script = write(machine.home / "server" / "main.py")
    data = write(machine.home / "data.csv")
    files = machine.files()
    files.add_argument(script)
    files.add_argument(data)
    assert files.added == (str(data), str(script.parent))


def test_the_home_is_never_added(machine: Machine) -> None:
    script = write(machine.home / "main.py")
    files = machine.files()
    files.add_argument(machine.home)
    files.add_argument(Path("/"))
    files.add_argument(script)
    assert files.added == (str(script),)


def test_links_in_a_circle_end(machine: Machine) -> None:
    folder = machine.home / "x"
    link(folder / "a", "b")
    link(folder / "b", "a")
    files = machine.files(folder)
    files.add_argument(folder / "a")
    assert files.added == ()
