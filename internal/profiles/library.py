"""All profiles: the files of several folders, with what they extend.

A file with an error makes its profile, and those that extend it, unusable; the others load. Changed
files are read again when a profile is asked for.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from internal.agent.domain.permissions.network import NetworkSetting
from internal.agent.domain.permissions.policy import Policy, with_network
from internal.agent.domain.permissions.rules import RuleError
from internal.agent.domain.permissions.targets import MCP_PREFIX
from internal.agent.domain.tasks import Profile
from internal.config.home import PROFILE_NAME
from internal.config.messages import nearest, plain
from internal.config.types import ConfigError
from internal.profiles.profile_file import (
    ProfileFile,
    ToolChanges,
    line_of,
    read_profile_file,
)

if TYPE_CHECKING:
    from internal.config.yaml_document import Document

DEFAULT_PROFILE = "default"
"""The profile of tasks that name none. It needs no file."""
MAX_PROFILES = 200
MAX_EXTENSIONS = 8

_Version = tuple[tuple[str, int, int], ...]


def shipped_folder() -> Path:
    """Return the folder of the profiles that are shipped: of the wheel, or of the sources."""
    installed = Path(__file__).with_name("shipped")
    return installed if installed.is_dir() else Path(__file__).parents[2] / "configs" / "profiles"


class ProfileSource(NamedTuple):
    """Where a profile is from.

    `problem` is why it cannot be used, "" if it can; `warning` is what may be wrong with it.
    """

    name: str
    path: Path | None
    problem: str = ""
    warning: str = ""


class _File(NamedTuple):
    path: Path
    keys: ProfileFile
    document: "Document"

    def error(self, sentence: str, *keys: str | int) -> ConfigError:
        return ConfigError(f"{self.path}:{line_of(self.document, *keys)}: {sentence}")


class _Profiles(NamedTuple):
    """What was read of files of this version."""

    version: _Version | None
    usable: Mapping[str, Profile]
    sources: Mapping[str, ProfileSource]


class ProfileLibrary(Mapping[str, Profile]):
    """The usable profiles by name.

    May be used in several threads.

    Args:
        folders: where files are, those of the owner last: they replace others of the same name.
            Folders that do not exist are empty.
        tools: the names of all tools, which files may name.
        doubt_model: returns why there may be no such model, a sentence, or "".
        shipped: a folder of the installation, before the others. Its files are looked for once.
    """

    def __init__(
        self,
        folders: Iterable[Path],
        tools: Iterable[str],
        doubt_model: Callable[[str], str] = lambda _model: "",
        shipped: Path | None = None,
    ) -> None:
        self._folders = tuple(folders)
        self._shipped = shipped
        self._shipped_versions: _Version | None = None
        self._tools = tuple(tools)
        self._doubt_model = doubt_model
        self._found = _Profiles(None, {}, {})

    def __getitem__(self, name: str) -> Profile:
        return self._current().usable[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._current().usable)

    def __len__(self) -> int:
        return len(self._current().usable)

    def has_only(self, folder: Path) -> bool:
        """Return whether every file is in one folder, without reading them."""
        return all(Path(path).parent == folder for path, _, _ in self._versions())

    def sources(self) -> list[ProfileSource]:
        """Return where each profile is from, also of those that cannot be used, by name."""
        sources = self._current().sources
        return [sources[name] for name in sorted(sources)]

    def problems(self) -> dict[str, str]:
        """Return why profiles cannot be used, by name."""
        return {one.name: one.problem for one in self.sources() if one.problem}

    def warnings(self) -> dict[str, str]:
        """Return what may be wrong with profiles that can be used, by name."""
        return {one.name: one.warning for one in self.sources() if one.warning}

    def _current(self) -> _Profiles:
        version, found = tuple(self._versions()), self._found
        if version != found.version:
            found = _Profiles(version, *self._load([Path(path) for path, _, _ in version]))
            self._found = found
        return found

    def _versions(self) -> Iterator[tuple[str, int, int]]:
        """Yield the path, time and size of each file, those of the owner last."""
        if self._shipped_versions is None:
            self._shipped_versions = tuple(_versions_in(self._shipped)) if self._shipped else ()
        yield from self._shipped_versions
        for folder in self._folders:
            yield from _versions_in(folder)

    def _load(
        self, paths: Iterable[Path]
    ) -> tuple[Mapping[str, Profile], Mapping[str, ProfileSource]]:
        files: dict[str, _File] = {}
        problems: dict[str, tuple[Path, str]] = {}
        for path in paths:
            name = path.stem
            files.pop(name, None)
            problems.pop(name, None)
            try:
                files[name] = _read(path)
            except ConfigError as error:
                problems[name] = path, str(error)
        profiles = {DEFAULT_PROFILE: Profile()}
        sources = {DEFAULT_PROFILE: ProfileSource(DEFAULT_PROFILE, None)}
        for name, file in files.items():
            try:
                profiles[name] = self._build(name, files, problems, ())
                warning = self._warning(file)
                sources[name] = ProfileSource(name, file.path, warning=warning)
            except ConfigError as error:
                problems[name] = file.path, str(error)
        for name, (path, problem) in problems.items():
            sources[name] = ProfileSource(plain(name), path, problem)
            profiles.pop(name, None)
        return profiles, sources

    def _warning(self, file: _File) -> str:
        doubt = self._doubt_model(file.keys.model) if file.keys.model else ""
        return str(file.error(f"model: {doubt}", "model")) if doubt else ""

    def _build(
        self,
        name: str,
        files: Mapping[str, _File],
        problems: Mapping[str, tuple[Path, str]],
        above: tuple[str, ...],
    ) -> Profile:
        """Return the profile of a file.

        Raises:
            ConfigError: something that it names does not exist, or it extends itself.
        """
        file = files[name]
        base = Profile()
        if (extended := file.keys.extends) is not None:
            chain = (*above, name)
            if extended in chain:
                circle = " → ".join((*chain[chain.index(extended) :], extended))
                raise file.error(f"the profiles extend each other: {circle}.", "extends")
            if len(chain) > MAX_EXTENSIONS:
                raise file.error(f"more than {MAX_EXTENSIONS} profiles extend one another.")
            if extended in problems:
                sentence = f"{extended}, which it extends, cannot be used: {problems[extended][1]}"
                raise file.error(sentence, "extends")
            if extended in files:
                base = self._build(extended, files, problems, chain)
            elif extended != DEFAULT_PROFILE:
                hint = nearest(extended, files)
                raise file.error(
                    f"there is no profile {plain(extended)} to extend{hint}", "extends"
                )
        return self._apply(name, file, base)

    def _apply(self, name: str, file: _File, base: Profile) -> Profile:
        keys = file.keys
        given = {key: getattr(keys, key) for key in keys.model_fields_set}
        for key in ("extends", "tools", "instructions"):
            given.pop(key, None)
        values = {key: value for key, value in given.items() if value is not None}
        if "max_cost" in values and not values["max_cost"]:
            raise file.error("max_cost must be more than 0.", "max_cost")
        _check_network(file, keys.network)
        if keys.instructions is not None:
            values["prompt"] = keys.instructions
        values["tools"] = self._tool_names(file, base.tools)
        fields = {each: getattr(base, each) for each in Profile.__struct_fields__}
        return Profile(**{**fields, **values, "name": name})

    def _tool_names(self, file: _File, base: tuple[str, ...] | None) -> tuple[str, ...] | None:
        wanted = file.keys.tools
        if wanted is None:
            return base
        if not isinstance(wanted, ToolChanges):
            self._check_tools(file, wanted, "tools")
            return tuple(dict.fromkeys(wanted))
        self._check_tools(file, wanted.add, "tools", "add")
        self._check_tools(file, wanted.remove, "tools", "remove")
        names = (*(self._tools if base is None else base), *wanted.add)
        return tuple(dict.fromkeys(one for one in names if one not in wanted.remove))

    def _check_tools(self, file: _File, names: Iterable[str], *keys: str) -> None:
        for at, name in enumerate(names):
            if name not in self._tools and not name.startswith(MCP_PREFIX):
                hint = nearest(name, self._tools)
                raise file.error(f"there is no tool {plain(name)}{hint}", *keys, at)


def _versions_in(folder: Path) -> Iterator[tuple[str, int, int]]:
    try:
        with os.scandir(folder) as entries:
            found = sorted(one.path for one in entries if one.name.endswith(".yaml"))
    except OSError:
        return
    for path in found[:MAX_PROFILES]:
        try:
            status = os.stat(path)  # noqa: PTH116 - text: of every run
        except OSError:
            yield path, 0, 0
        else:
            yield path, status.st_mtime_ns, status.st_size


def _read(path: Path) -> _File:
    """Read a file.

    Raises:
        ConfigError: its name, or something in it, is wrong.
    """
    if not PROFILE_NAME.fullmatch(path.stem):
        raise ConfigError(f"{path}: use lower-case letters, digits, - and _ as a name.")
    return _File(path, *read_profile_file(path))


def _check_network(file: _File, setting: NetworkSetting | None) -> None:
    try:
        with_network(Policy(), setting)
    except RuleError as error:
        raise file.error(f"network: {error}.", "network") from error
