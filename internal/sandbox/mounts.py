"""The file system of a command in a mount namespace, apart from the programs.

Earlier commands of a session may have replaced a file to be mounted by a symbolic link, and a
running one may do so at any moment. So links are resolved here, and the first program inside
compares the mounts with the intended files: see `roots`.
"""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from internal.agent.domain.errors import ToolError
from internal.agent.ports.sandbox import FileAccess
from internal.sandbox.roots import PrivatePlaces, Root, find_root

SYSTEM_FILES = (
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/os-release",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
)
"""Files of /etc that every command may read; none is secret."""

_RESERVED = ("/", "/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr")

CHANGED = "the files of the workspace changed while the command started; try again"

# $1: mount points inside of writable folders as /proc writes them, $2: the device:inode numbers of
# what is mounted, $3: the paths. The programs are those of the system, whatever PATH is.
_COMPARE = f"""
set -f
if [ -n "$1" ]; then
  points=" "
  while read -r _ _ _ _ point _; do points="$points$point "; done </proc/self/mountinfo
  for point in $1; do
    case "$points" in *" $point "*) ;; *) echo "{CHANGED}"; exit 125 ;; esac
  done
fi
IFS='
'
[ "$(command -p stat -c %d:%i -- $3)" = "$2" ] || {{ echo "{CHANGED}"; exit 125; }}
unset IFS
shift 3
exec "$@"
"""


MountKind = Literal["writable", "read-only", "hidden folder", "hidden file"]


class Mount(NamedTuple):
    """A mount: the file or folder `source` of this machine appears as `path` inside."""

    source: str
    path: str
    kind: MountKind


class Mounts:
    """The mounts of one command.

    Args:
        access: the files of the command.
        home: its private home folder.
        read_only: further paths that it may read, each with the place to which it must lead.
        private: the files and folders of Larkspur, which it does not see.

    Raises:
        ToolError: a root would replace a folder of the system, leads elsewhere, or is private.
    """

    def __init__(
        self,
        access: FileAccess,
        home: str,
        *,
        read_only: Mapping[str, str] = MappingProxyType({}),
        private: PrivatePlaces | None = None,
    ) -> None:
        self._mounts: dict[str, MountKind] = {}
        self._compared: dict[str, str] = {}
        self._roots: dict[str, Root] = {}
        self._hidden = [] if private is None else list(private.hidden)
        self._writable = [_checked(path) for path in (*access.writable, home)]
        readable = [_checked(path) for path in access.read_only if not _is_system(path)]
        for path in read_only:
            if not _is_system(path):
                self._add_root(_checked(path), "read-only", read_only)
        shared = len(self._roots)
        kinds: tuple[tuple[list[str], MountKind], ...]
        kinds = ((self._writable, "writable"), (readable, "read-only"))
        for paths, kind in kinds:
            for path in paths:
                if not self._can_be_replaced(path):
                    self._add_root(path, kind, access.links)
        if private is not None:
            private.check([*self._roots.values()][shared:])
        for path in self._hidden.copy():
            self._hidden += self._places(path)
        for path in filter(self._can_be_replaced, readable):
            self._protect(path)
        for path in self._hidden:
            self._hide(path)

    def sorted(self) -> list[Mount]:
        """Return the mounts, parents first."""
        paths = sorted(self._mounts, key=lambda path: (path.count("/"), path))
        return [
            Mount(self._roots[path].real if path in self._roots else path, path, self._mounts[path])
            for path in paths
        ]

    def comparison(self) -> list[str]:
        """Return the prefix of a command line that compares the mounts; it may be empty.

        The program ends with the sentence `CHANGED` if a mount differs from the intended file.
        """
        if not self._compared:
            return []
        points = " ".join(_encode(path) for path in self._compared if path not in self._roots)
        return [
            *("/bin/sh", "-c", _COMPARE, "sh", points),
            *("\n".join(self._compared.values()), "\n".join(self._compared)),
        ]

    def _can_be_replaced(self, path: str) -> bool:
        """Return True if commands can put something else in the place of a file.

        This is decided by the text of the path: a link cannot pretend to be somewhere else.
        """
        return any(
            _is_inside(path, folder)
            and not any(_is_inside(path, one) and _is_inside(one, folder) for one in self._hidden)
            for folder in self._writable
        )

    def _add_root(self, path: str, kind: MountKind, links: Mapping[str, str]) -> None:
        root = find_root(path, links)
        if root is not None:
            self._mounts[path] = kind
            self._roots[path] = root
            self._compared[path] = f"{root.device}:{root.inode}"

    def _protect(self, path: str) -> None:
        """Make a path in a writable folder read-only, or the target of a link within one."""
        for place in self._places(path):
            self._add_inside(place, "read-only")

    def _hide(self, path: str) -> None:
        for place in self._places(path):
            if any(_is_inside(place, other) for other in self._hidden):
                continue
            self._keep_parents(place)
            is_folder = os.path.isdir(path)  # noqa: PTH112  # text like the others
            self._mounts[place] = "hidden folder" if is_folder else "hidden file"

    def _places(self, path: str) -> Iterator[str]:
        """Yield where an existing file is seen below the folders that a command gets."""
        if not os.path.lexists(path):  # the usual case, in one system call
            return
        try:
            real = os.path.realpath(path, strict=True)
        except OSError:
            return
        for root in self._roots.values():
            if _is_inside(real, root.real):
                yield os.path.normpath(f"{root.path}/{os.path.relpath(real, root.real)}")

    def _add_inside(self, path: str, kind: MountKind) -> None:
        try:
            status = os.lstat(path)
        except OSError:
            return
        if stat.S_ISLNK(status.st_mode):
            return  # it became one just now
        self._keep_parents(path)
        self._mounts[path] = kind
        self._compared[path] = f"{status.st_dev}:{status.st_ino}"

    def _keep_parents(self, path: str) -> None:
        """Mount the folders between a root and a path, so that they cannot be renamed."""
        parent = os.path.dirname(path)  # noqa: PTH120  # text, not a file
        if parent not in self._mounts and self._can_be_replaced(parent):
            self._add_inside(parent, "writable")


def _checked(path: str) -> str:
    """Return the path of a folder that a command may see.

    Raises:
        ToolError: it would replace a folder of the system.
    """
    normal = os.path.normpath(path)
    if normal in _RESERVED or normal.startswith(("/proc/", "/sys/", "/dev/")) or "\n" in normal:
        raise ToolError(f"{path} cannot be used in the sandbox; choose a folder of your own files")
    return normal


def _is_system(path: str) -> bool:
    """Return True for a path that every command sees."""
    return _is_inside(f"{os.path.normpath(path)}/", "/usr")


def _is_inside(path: str, folder: str) -> bool:
    return path.startswith(f"{folder.rstrip('/')}/")


def _encode(path: str) -> str:
    """Return a path as proc(5) writes it in mountinfo."""
    return re.sub(r"[ \t\n\\]", lambda found: f"\\{ord(found[0]):03o}", path)
