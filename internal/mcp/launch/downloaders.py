"""Command lines that download a package and start it, such as `uvx mcp-server-time`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

Ecosystem = Literal["python", "npm"]

MAX_PACKAGES = 20
"""Maximum number of packages in one command line."""


class PackageCommand(NamedTuple):
    """A command line that starts a program of packages.

    `downloader` is the program as it was typed, `installer` the one that installs the packages:
    a name, for a program of the same folder. The first of `packages`, which are as the installer
    takes them, has the program; `program` is its name, "" for the package's own. `options` are
    further ones of the installer, `args` the arguments of the program.
    """

    downloader: str
    installer: str
    ecosystem: Ecosystem
    packages: tuple[str, ...]
    program: str = ""
    args: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The packages, for people."""
        return ", ".join(self.packages)


class _Form(NamedTuple):
    """Command-line syntax of a downloader.

    `words` follow the program, before the options. `valued` are its options with a value; the
    options in `packages` name additional packages, and the options in `sources` name the package of
    the program. `kept` are options that the installer understands as well; a command line with a
    `refused` option is not a download.
    """

    installer: str
    ecosystem: Ecosystem
    words: tuple[tuple[str, ...], ...] = ((),)
    valued: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()


_UV_INDEXES = frozenset(
    {"--index-url", "-i", "--default-index", "--index", "--extra-index-url", "--find-links", "-f"}
)
_UV_KEPT = _UV_INDEXES | {"--python", "-p", "--with-requirements", "--constraints", "-c"}
_UV_KEPT |= {"--overrides", "--prerelease", "--resolution", "--exclude-newer", "--index-strategy"}
_UV_KEPT |= {"--no-binary-package", "--no-build-package", "--config-setting", "-C"}
_UV_VALUED = _UV_KEPT | {"--with-editable", "--color", "--directory", "--project", "--cache-dir"}
_UV_VALUED |= {
    "--config-file",
    "--env-file",
    "--allow-insecure-host",
    "--link-mode",
    "--refresh-package",
}
_UV_VALUED |= {"--upgrade-package", "-P", "--reinstall-package", "--keyring-provider"}
_UV_VALUED |= {"--python-platform", "--torch-backend", "--build-constraints", "-b"}

_UVX = _Form(
    "uv",
    "python",
    valued=_UV_VALUED,
    sources=frozenset({"--from"}),
    packages=frozenset({"--with", "-w"}),
    kept=_UV_KEPT,
)
_UV_RUN = _UVX._replace(
    words=(("run",),),
    sources=frozenset({"--with", "-w"}),
    packages=frozenset(),
    # they name a project with an environment of its own
    refused=frozenset({"--directory", "--project", "--script", "-m", "--module"}),
)
_NPX = _Form(
    "npm",
    "npm",
    valued=frozenset({"--registry", "--cache", "--prefix", "-w", "--workspace", "--loglevel"}),
    sources=frozenset({"-p", "--package"}),
    kept=frozenset({"--registry"}),
)
_FORMS: Mapping[str, _Form] = {
    "uvx": _UVX,
    "uv": _UVX._replace(words=(("tool", "run"),)),
    "npx": _NPX,
    "npm": _NPX._replace(words=(("exec",), ("x",))),
    "pnpx": _NPX._replace(installer="pnpm"),
    "pnpm": _NPX._replace(installer="pnpm", words=(("dlx",),)),
    "bunx": _NPX._replace(installer="bun"),
    "bun": _NPX._replace(installer="bun", words=(("x",),)),
    "pipx": _Form(
        "pipx",
        "python",
        words=(("run",),),
        valued=frozenset({"--python", "--pip-args", "--index-url", "-i"}),
        sources=frozenset({"--spec"}),
        packages=frozenset({"--with"}),
        kept=frozenset({"--python", "--pip-args", "--index-url", "-i"}),
    ),
}
_COMMAND_OPTIONS = frozenset({"-c", "--call"})
"""Options of npx whose value is a command line for a shell."""

_CONTAINERS = frozenset({"docker", "podman", "nerdctl"})

_PYTHON_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")
_PYTHON_VERSION = re.compile(r"([A-Za-z0-9._-]+(?:\[[A-Za-z0-9._,-]+\])?)@([0-9][A-Za-z0-9.!+*-]*)")
_NPM_NAME = re.compile(r"(?P<name>(?:@[A-Za-z0-9._~-]+/)?[A-Za-z0-9._~-]+)(?:@[^@/]*)?")
_HOST = re.compile(r"(?:git\+)?(?:https?|ssh|git)://(?:[^@/]*@)?(?P<host>[A-Za-z0-9.-]+(?::\d+)?)/")
_GITHUB_NAME = re.compile(r"(?:github:)?[A-Za-z0-9-]+/[A-Za-z0-9._-]+(?:#.*)?")
_GITHUB = ("github.com", "codeload.github.com")


def parse_package_command(command: str, args: Sequence[str]) -> PackageCommand | None:
    """Return the package that a command line downloads, None if it downloads none that is known.

    `uv run --with` is like `uvx --from` if no project is named.
    """
    name = Path(command).name
    form = _FORMS.get(name)
    if form is None:
        return None
    for each in (form, _UV_RUN) if name == "uv" else (form,):
        rest = _after_words(each, args)
        if rest is not None:
            return _parse(command, each, rest)
    return None


def starts_containers(command: str) -> bool:
    """Return True for a program that lets a service outside of the sandbox start the server."""
    return Path(command).name in _CONTAINERS


def python_name(requirement: str) -> str:
    """Return the normalized name of a requirement such as `Mcp_Server[x]==1`; "" for an address."""
    match = _PYTHON_NAME.match(requirement)
    rest = requirement[match.end() :].lstrip() if match else ""
    if match is None or "/" in rest.partition("@")[0] or rest.startswith("+"):
        return ""
    return re.sub(r"[-_.]+", "-", match[1]).lower()


def npm_name(specifier: str) -> str:
    """Return the name of a package such as `@scope/server@1`; "" for an address."""
    match = _NPM_NAME.fullmatch(specifier)
    return match["name"] if match else ""


def hosts_of(packages: Sequence[str], ecosystem: Ecosystem) -> tuple[str, ...]:
    """Return the hosts of packages that are not names in the registry."""
    found: list[str] = []
    for package in packages:
        if match := _HOST.search(package):
            found.append(match["host"])
        elif ecosystem == "npm" and not npm_name(package) and _GITHUB_NAME.fullmatch(package):
            found += _GITHUB
        if found and "github.com" in found:
            found += _GITHUB
    return tuple(dict.fromkeys(found))


def _after_words(form: _Form, args: Sequence[str]) -> tuple[str, ...] | None:
    """Return the arguments after the words of a form, which may follow options."""
    for words in form.words:
        begin = 0
        while words and begin < len(args) and args[begin].startswith("-"):
            begin += 1 if "=" in args[begin] or args[begin] not in form.valued else 2
        end = begin + len(words)
        if tuple(args[begin:end]) == words:
            return (*args[:begin], *args[end:])
    return None


def _options(form: _Form, args: Sequence[str]) -> Iterator[tuple[str, str, int]]:
    """Yield the options in front of the program, each with its value and where the rest begins."""
    position = 0
    with_value = form.valued | form.sources | form.packages
    while position < len(args) and args[position].startswith("-"):
        option, equals, value = args[position].partition("=")
        position += 1
        if option == "--":
            yield option, "", position
            return
        if option in with_value and not equals and position < len(args):
            value = args[position]
            position += 1
        yield option, value, position


def _parse(command: str, form: _Form, args: tuple[str, ...]) -> PackageCommand | None:
    sources: list[str] = []
    further: list[str] = []
    options: list[str] = []
    given = [*_options(form, args)]
    for option, value, _ in given:
        if form.ecosystem == "npm" and option in _COMMAND_OPTIONS:
            return None
        if option in form.sources:
            sources.append(value)
        elif option in form.packages:
            further += value.split(",")
        elif option in form.kept:
            options += [option, value]
    rest = args[given[-1][2] :] if given else args
    is_run = form is _UV_RUN
    if not rest or (is_run and not sources) or form.refused & {option for option, *_ in given}:
        return None
    if is_run and rest[0].endswith(".py"):
        rest = ("python", *rest)
    program = rest[0] if sources else ""
    first = [*sources] or [_requirement(rest[0], form.ecosystem)]
    packages = (*first, *further)
    if len(packages) > MAX_PACKAGES or any(one.startswith("-") or not one for one in packages):
        return None
    installer = str(Path(command).with_name(form.installer)) if "/" in command else form.installer
    named = PackageCommand(command, installer, form.ecosystem, packages, program)
    # npm itself takes the first -- away, npx and uvx hand it on
    is_npm = Path(command).name == "npm"
    arguments = rest[2:] if is_npm and rest[1:2] == ("--",) else rest[1:]
    return named._replace(args=arguments, options=tuple(options))


def _requirement(package: str, ecosystem: Ecosystem) -> str:
    """Return a package as an installer takes it: uvx and pipx write versions with @."""
    if ecosystem == "npm":
        return package
    if match := _PYTHON_VERSION.fullmatch(package):
        return f"{match[1]}=={match[2]}"
    return package.removesuffix("@latest")
