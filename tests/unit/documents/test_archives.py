"""Lists of archives."""

import io
import tarfile
import zipfile

import pytest

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.archives import read_tar, read_zip
from tests.support import documents


def test_a_zip_is_listed_with_sizes_and_hostile_names_are_escaped() -> None:
    content = documents.archive({"../../etc/passwd": "x" * 2_000, "a\u202egpj.exe": "", "b/": ""})
    document = read_zip(io.BytesIO(content))
    assert document.parts == 3
    assert "".join(document.pieces).splitlines()[1:] == [
        "",
        "../../etc/passwd  2.0 KB",
        "a\\u202egpj.exe  0 bytes",
        "b/",
    ]


def test_names_of_a_chinese_windows_are_decoded() -> None:
    name = "报告.txt".encode("gb18030")
    content = documents.archive({"x" * len(name): "1"}).replace(b"x" * len(name), name)
    assert "报告.txt  1 bytes" in "".join(read_zip(io.BytesIO(content)).pieces)


def test_an_encrypted_zip_is_listed_as_such() -> None:
    text = "".join(read_zip(io.BytesIO(documents.encrypted_archive({"a": "b"}))).pieces)
    assert text == "ZIP archive: 1 entries, 1 bytes, unpacked 1 bytes, encrypted\n\na  1 bytes\n"


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2"])
def test_a_tar_archive_is_listed(mode: str) -> None:
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode=mode) as archive:  # type: ignore[call-overload]  # a str
        file, link = tarfile.TarInfo("data/a.txt"), tarfile.TarInfo("link")
        file.size, link.type, link.linkname = 3, tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(file, io.BytesIO(b"abc"))
        archive.addfile(link)
    text = "".join(read_tar(io.BytesIO(output.getvalue())).pieces)
    assert text == "tar archive\n\ndata/a.txt  3 bytes\nlink (link or special)\n"


def test_damaged_archives_are_explained() -> None:
    whole = documents.archive({"a": "b"})
    with pytest.raises(DocumentUnreadable, match="ZIP archive is damaged"):
        read_zip(io.BytesIO(whole[:-10]))
    with pytest.raises(DocumentUnreadable, match="compressed or damaged"):
        read_tar(io.BytesIO(b"\x1f\x8b\x08" + bytes(100)))
    with pytest.raises(zipfile.BadZipFile):
        zipfile.ZipFile(io.BytesIO(whole[:-10]))
