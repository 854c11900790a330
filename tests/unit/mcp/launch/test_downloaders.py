"""Parsing of the command lines of downloaders."""

import shlex

import pytest

from internal.mcp.launch.downloaders import (
    hosts_of,
    npm_name,
    parse_package_command,
    python_name,
    starts_containers,
)


@pytest.mark.parametrize(
    ("line", "installer", "packages", "program", "args", "options"),
    [
        ("uvx mcp-server-time --zone UTC", "uv", "mcp-server-time", "", "--zone UTC", ""),
        ("uvx x@1.2.3 -v", "uv", "x==1.2.3", "", "-v", ""),
        ("uvx x@latest", "uv", "x", "", "", ""),
        ("uvx --from x[cli]==1 serve a", "uv", "x[cli]==1", "serve", "a", ""),
        ("uvx --python 3.12 --with y x", "uv", "x y", "", "", "--python 3.12"),
        (
            "uvx --index-url=https://a.example/simple x",
            "uv",
            "x",
            "",
            "",
            "--index-url https://a.example/simple",
        ),
        ("uv tool run --quiet x a", "uv", "x", "", "a", ""),
        ("uv run --with x[cli] serve a", "uv", "x[cli]", "serve", "a", ""),
        ("uv run --with x --with y /s.py", "uv", "x y", "python", "/s.py", ""),
        ("/home/ada/.local/bin/uvx x", "/home/ada/.local/bin/uv", "x", "", "", ""),
        ("npx -y @scope/server@latest /notes", "npm", "@scope/server@latest", "", "/notes", ""),
        ("npx -y -p @scope/server serve --port 1", "npm", "@scope/server", "serve", "--port 1", ""),
        ("npx --package=a --package b run", "npm", "a b", "run", "", ""),
        ("npm exec --yes -- server -- --flag", "npm", "server", "", "--flag", ""),
        ("npm x server", "npm", "server", "", "", ""),
        ("pnpm dlx server a", "pnpm", "server", "", "a", ""),
        ("pnpx server", "pnpm", "server", "", "", ""),
        ("bunx --bun server a", "bun", "server", "", "a", ""),
        ("bun x server", "bun", "server", "", "", ""),
        ("pipx run --spec x==1 serve a", "pipx", "x==1", "serve", "a", ""),
        ("pipx run x", "pipx", "x", "", "", ""),
    ],
)
def test_packages_program_and_arguments_are_told_apart(
    line: str, installer: str, packages: str, program: str, args: str, options: str
) -> None:
    command, *rest = shlex.split(line)
    found = parse_package_command(command, rest)
    assert found is not None
    assert found.installer == installer
    assert (found.packages, found.program) == (tuple(packages.split()), program)
    assert (found.args, found.options) == (tuple(args.split()), tuple(options.split()))


@pytest.mark.parametrize(
    "line",
    [
        "python server.py",
        "uv run server.py",
        "uv run --directory /p --with x serve",
        "uv --directory /p run serve",
        "uvx",
        "uvx --from x",
        "npx -c 'server --stdio'",
        "npm install x",
        "pnpm install",
        "bun run server.ts",
        "docker run mcp/time",
        "npx -p --global x",
    ],
)
def test_other_command_lines_download_nothing_that_is_known(line: str) -> None:
    command, *rest = shlex.split(line)
    assert parse_package_command(command, rest) is None


def test_programs_that_start_containers_are_known() -> None:
    assert starts_containers("/usr/bin/docker")
    assert starts_containers("podman")
    assert not starts_containers("npx")


def test_names_are_found_in_requirements() -> None:
    python = ("Mcp_Server.Time[x]>=1", "x @ git+https://github.com/a/b", "git+https://a.example/b")
    assert [*map(python_name, python)] == ["mcp-server-time", "x", ""]
    npm = ("@scope/server@1.2", "server", "github:ada/server", "git+https://a.example/b")
    assert [*map(npm_name, npm)] == ["@scope/server", "server", "", ""]


def test_packages_from_elsewhere_need_other_hosts() -> None:
    git = "git+https://github.com/ada/server@main"
    assert hosts_of([git], "python") == ("github.com", "codeload.github.com")
    assert hosts_of(["https://files.example:8443/x.tgz"], "npm") == ("files.example:8443",)
    assert hosts_of(["ada/server"], "npm") == ("github.com", "codeload.github.com")
    assert hosts_of(["@scope/server"], "npm") == ()
