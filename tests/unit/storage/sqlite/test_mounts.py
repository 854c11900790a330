"""Detection of network file systems."""

from pathlib import Path

import pytest

from internal.storage.sqlite.mounts import file_system_of, find_network_file_system

MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /home rw - nfs4 server:/home rw
31 30 0:27 / /home/ana/my\\040disk rw shared:9 master:2 - ext4 /dev/sdb rw
32 22 0:28 / /mnt/c rw - 9p C:\\134 rw
33 22 0:29 / /cloud rw - fuse.sshfs host:/ rw
34 22 0:30 / /twice rw - nfs server:/ rw
35 34 0:31 / /twice rw - tmpfs none rw
"""


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("/", "ext4"),
        ("/homeless", "ext4"),
        ("/home", "nfs4"),
        ("/home/ana", "nfs4"),
        ("/home/ana/my disk/larkspur", "ext4"),
        ("/mnt/c/Users", "9p"),
        ("/cloud/x", "fuse.sshfs"),
        ("/twice/x", "tmpfs"),
    ],
)
def test_the_deepest_and_newest_mount_counts(folder: str, name: str) -> None:
    assert file_system_of(Path(folder), MOUNTS) == name


def test_the_temporary_folder_is_local(tmp_path: Path) -> None:
    assert find_network_file_system(tmp_path) is None
