"""Detection of network file systems, on which SQLite's locks and shared memory do not work."""

from pathlib import Path

_MOUNTINFO = Path("/proc/self/mountinfo")
_NETWORK = {
    "9p", "acfs", "afs", "ceph", "cifs", "coda", "drvfs", "gfs2", "glusterfs", "gpfs", "lustre",
    "ncpfs", "nfs", "nfs4", "ocfs2", "smb2", "smb3", "smbfs", "vboxsf", "vmhgfs",
}  # fmt: skip
_LOCAL_FUSE = {"fuse-overlayfs", "fuse.fuse-overlayfs", "fuseblk"}  # containers, and local disks


def find_network_file_system(folder: Path) -> str | None:
    """Return the name of the network file system that a folder is on, None when it is local.

    Every folder counts as local where there is no /proc.
    """
    try:
        mountinfo = _MOUNTINFO.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    name = file_system_of(folder.resolve(), mountinfo)
    is_fuse = name.startswith("fuse") and name not in _LOCAL_FUSE
    return name if is_fuse or name in _NETWORK else None


def file_system_of(folder: Path, mountinfo: str) -> str:
    """Return the file system of the deepest, then newest, mount that contains the folder.

    Args:
        folder: an absolute path without symbolic links.
        mountinfo: the text of proc_pid_mountinfo(5).

    Returns:
        The name of the file system, "" when no mount contains the folder.
    """
    found, depth = "", 0
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        point = Path(_unescape(before.split(" ")[4]))
        if len(point.parts) >= depth and folder.is_relative_to(point):
            found, depth = after.split(" ")[0], len(point.parts)
    return found


def _unescape(field: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, character)
    return field
