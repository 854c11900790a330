"""All profiles: the files of several folders, with their base profiles.

A file with an error makes its profile, and all profiles that extend it, unusable; the others load.
Changed files are read again when a profile is requested.
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
from internal.profiles.profile_file import (
    ProfileFile,
    ToolChanges,
    line_of,
    read_profile_file,
)
from internal.settings.messages import nearest, plain
from internal.settings.types import ConfigError

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
    """The source of a profile.

    `problem` is the reason why it cannot be used, "" if it can; `warning` names a possible mistake.
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


class _Profiles:
    """The files of one version. Each is read once, when a profile needs it."""

    def __init__(self, version: _Version | None) -> None:
        self.version = version
        self.paths: dict[str, Path] = {}
        for path in map(Path, (path for path, _, _ in version or ())):
            self.paths.pop(path.stem, None)
            self.paths[path.stem] = path
        self.built: dict[str, Profile | ConfigError] = {}
        self._files: dict[str, _File | ConfigError] = {}

    def read(self, name: str) -> _File:
        """Return a file.

        Raises:
            ConfigError: its name, or something in it, is wrong.
        """
        found = self._files.get(name)
        if found is None:
            try:
                found = _read(self.paths[name])
            except ConfigError as error:
                found = error
            self._files[name] = found
        if isinstance(found, ConfigError):
            raise found
        return found


class ProfileLibrary(Mapping[str, Profile]):
    """The usable profiles by name.

    May be used in several threads.

    Args:
        folders: the folders with files, the owner's last: its files replace others of the same
            name. Folders that do not exist are empty.
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
        self._found = _Profiles(None)

    def __getitem__(self, name: str) -> Profile:
        profile = self._find(name, self._current())
        if isinstance(profile, ConfigError):
            raise KeyError(name)
        return profile

    def __iter__(self) -> Iterator[str]:
        found = self._current()
        names = {DEFAULT_PROFILE: None, **found.paths}
        return (name for name in names if not isinstance(self._find(name, found), ConfigError))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def has_only(self, folder: Path) -> bool:
        """Return whether every file is in one folder, without reading them."""
        return all(Path(path).parent == folder for path, _, _ in self._versions())

    def sources(self) -> list[ProfileSource]:
        """Return the source of each profile by name, unusable profiles included."""
        found = self._current()
        return [self._source(name, found) for name in sorted({DEFAULT_PROFILE, *found.paths})]

    def problems(self) -> dict[str, str]:
        """Return why profiles cannot be used, by name."""
        return {one.name: one.problem for one in self.sources() if one.problem}

    def warnings(self) -> dict[str, str]:
        """Return the possible mistakes in usable profiles, by name."""
        return {one.name: one.warning for one in self.sources() if one.warning}

    def _current(self) -> _Profiles:
        version, found = tuple(self._versions()), self._found
        if version != found.version:
            self._found = found = _Profiles(version)
        return found

    def _versions(self) -> Iterator[tuple[str, int, int]]:
        """Yield the path, time and size of each file, the owner's files last."""
        if self._shipped_versions is None:
            self._shipped_versions = tuple(_versions_in(self._shipped)) if self._shipped else ()
        yield from self._shipped_versions
        for folder in self._folders:
            yield from _versions_in(folder)

    def _find(self, name: str, found: _Profiles) -> Profile | ConfigError:
        """Return a profile, or the reason why it cannot be used; it is built once.

        Raises:
            KeyError: there is no such profile.
        """
        profile = found.built.get(name)
        if profile is None:
            try:
                if name not in found.paths and name == DEFAULT_PROFILE:
                    profile = Profile()
                else:
                    profile = self._build(name, found, ())
            except ConfigError as error:
                profile = error
            found.built[name] = profile
        return profile

    def _source(self, name: str, found: _Profiles) -> ProfileSource:
        profile, path = self._find(name, found), found.paths.get(name)
        if isinstance(profile, ConfigError):
            return ProfileSource(plain(name), path, str(profile))
        warning = "" if path is None else self._warning(found.read(name))
        return ProfileSource(name, path, warning=warning)

    def _warning(self, file: _File) -> str:
        doubt = self._doubt_model(file.keys.model) if file.keys.model else ""
        return str(file.error(f"model: {doubt}", "model")) if doubt else ""

    def _build(self, name: str, found: _Profiles, above: tuple[str, ...]) -> Profile:
        """Return the profile of a file.

        Raises:
            KeyError: there is no such file.
            ConfigError: it cannot be read, something that it names does not exist, or it extends
                itself.
        """
        file = found.read(name)
        base = Profile()
        if (extended := file.keys.extends) is not None:
            chain = (*above, name)
            if extended in chain:
                circle = " → ".join((*chain[chain.index(extended) :], extended))
                raise file.error(f"the profiles extend each other: {circle}.", "extends")
            if len(chain) > MAX_EXTENSIONS:
                raise file.error(f"more than {MAX_EXTENSIONS} profiles extend one another.")
            if extended in found.paths:
                try:
                    found.read(extended)
                except ConfigError as error:
                    sentence = f"{extended}, which it extends, cannot be used: {error}"
                    raise file.error(sentence, "extends") from None
                base = self._build(extended, found, chain)
            elif extended != DEFAULT_PROFILE:
                hint = nearest(extended, found.paths)
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
