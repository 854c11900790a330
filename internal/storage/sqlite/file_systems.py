"""Which file system a folder is on: SQLite's shared memory and locks do not work on all of them."""

from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
_NETWORK = {
    "9p", "acfs", "afs", "ceph", "cifs", "coda", "drvfs", "gfs2", "glusterfs", "gpfs", "lustre",
    "ncpfs", "nfs", "nfs4", "ocfs2", "smb2", "smb3", "smbfs", "vboxsf", "vmhgfs",
}  # fmt: skip
_LOCAL_FUSE = {"fuse-overlayfs", "fuse.fuse-overlayfs", "fuseblk"}  # containers, and local disks


def network_file_system(folder: Path) -> str | None:
    """Return the name of the network file system that a folder is on, None when it is local.

    Where the kernel does not tell (no /proc) every folder passes for a local one.
    """
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    name = file_system(mounts, folder.resolve())
    is_fuse = name.startswith("fuse") and name not in _LOCAL_FUSE
    return name if is_fuse or name in _NETWORK else None


def file_system(mounts: str, folder: Path) -> str:
    """Return the file system's name of the deepest, then newest, mount that holds the folder.

    `mounts` is the text of proc_pid_mountinfo(5); empty is returned when no mount holds it.
    """
    found, depth = "", 0
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        point = Path(_unescaped(before.split(" ")[4]))
        if len(point.parts) >= depth and folder.is_relative_to(point):
            found, depth = after.split(" ")[0], len(point.parts)
    return found


def _unescaped(field: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, character)
    return field
