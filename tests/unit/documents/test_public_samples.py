"""Documents that other projects publish: all are read, with every text that is in them."""

import html
import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.reader import ChildDocumentReader
from tests.support.document_samples import PUBLIC_SAMPLES
from tests.support.tools import native_sandbox

EXTENSIONS = frozenset({"docx", "odp", "ods", "odt", "pdf", "pptm", "pptx", "xlsm", "xlsx"})
MIN_FILES = 200
REFUSED = {
    "nasty.odt": "XML entities",
    **dict.fromkeys(
        (
            *(
                "crazyones-encrypted-256.pdf",
                "encrypted-file.pdf",
                "libreoffice-writer-password.pdf",
            ),
            *("r2-user-password.pdf", "r3-user-password.pdf", "r4-aes-user-password.pdf"),
            *("r4-user-password.pdf", "r5-user-password.pdf", "r6-both-passwords.pdf"),
            *("r6-cleartext-metadata.pdf", "r6-user-password.pdf"),
        ),
        "encrypted",
    ),
}
"""The files that cannot be read, and why."""
PARTS = re.compile(
    r"word/(?:document|comments|(?:header|footer)\d*)\.xml"
    r"|ppt/(?:slides/slide|notesSlides/notesSlide)\d+\.xml|ppt/charts/chart\d+\.xml"
)
TEXTS = re.compile(r"<(?:w:t|a:t|c:v)(?: [^>]*)?>([^<]+)</")
NUMBER = re.compile(r"-?[\d.eE-]+")

pytestmark = [pytest.mark.slow, pytest.mark.needs("public_samples"), pytest.mark.timeout(900)]


def samples() -> list[Path]:
    found = (each for each in sorted(PUBLIC_SAMPLES.rglob("*")) if each.is_file())
    return [each for each in found if each.suffix.lower().removeprefix(".") in EXTENSIONS]


def texts_in(path: Path) -> Iterator[str]:
    """Yield the texts of an Office file as a search in its XML finds them, but no numbers."""
    if path.suffix not in {".docx", ".pptm", ".pptx"}:
        return
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as package:
        for name in package.namelist():
            if PARTS.fullmatch(name):
                for text in TEXTS.findall(package.read(name).decode("utf-8", "replace")):
                    joined = re.sub(r"\s", "", html.unescape(text))
                    if joined and not NUMBER.fullmatch(joined):
                        yield joined


async def test_every_sample_is_read_with_all_its_texts(tmp_path: Path) -> None:
    reader = ChildDocumentReader(native_sandbox(tmp_path))
    problems, paths = [], samples()
    for path in paths:
        with path.open("rb") as file:
            try:
                read = await reader.read(file.fileno(), path.name, max_characters=10_000_000)
            except DocumentUnreadable as error:
                if REFUSED.get(path.name, "-") not in str(error):
                    problems.append(f"{path.name}: {error}")
                continue
        text = re.sub(r"\s|\\(?=\|)", "", read.text)
        problems += [f"{path.name}: {each}" for each in texts_in(path) if each not in text]
        if "understood" in read.text:
            problems.append(f"{path.name} was not understood: {read.text[:300]}")
    assert problems == []
    assert len(paths) >= MIN_FILES
