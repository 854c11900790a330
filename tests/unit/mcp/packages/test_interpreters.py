"""The interpreters of Python that packages can choose from."""

from pathlib import Path

from internal.mcp.packages.interpreters import find_pythons


def write(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\x7fELF")
    path.chmod(0o755)
    return path


def test_the_newest_comes_first_and_each_version_once(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    first = write(folder / "python3.11")
    write(folder / "python3.9")
    write(folder / "python3.11-config")
    managed = tmp_path / ".local" / "share" / "uv" / "python"
    newest = write(managed / "cpython-3.14.1" / "bin" / "python3.14")
    write(managed / "cpython-3.11.2" / "bin" / "python3.11")
    assert find_pythons(f"{folder}:relative:/no/such", tmp_path) == [newest, first]


def test_a_shim_is_replaced_by_its_program(tmp_path: Path) -> None:
    write(tmp_path / "manager" / "shims" / "python3.13")
    program = write(tmp_path / "manager" / "versions" / "3.13.0" / "bin" / "python3.13")
    assert find_pythons(str(tmp_path / "manager" / "shims"), tmp_path) == [program]
