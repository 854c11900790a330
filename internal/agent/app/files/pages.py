"""Pages of stored PDF files as pictures, for people whose client must not open the file itself."""

import tempfile

from internal.agent.app.files.session_files import SessionFiles
from internal.agent.domain.errors import DocumentUnreadable
from internal.agent.ports.documents import DocumentReader, Picture


async def read_page(
    files: SessionFiles, documents: DocumentReader, sha256: str, page: int
) -> Picture:
    """Return a page of a PDF as a picture; pages are counted from 1.

    Raises:
        DocumentUnreadable: there is no such page, or the file cannot be read.
        NotFound: there is no such file.
        FilesUnavailable: the service that stores files does not answer.
    """
    with tempfile.TemporaryFile() as copy:
        await files.copy_to(sha256, copy.fileno())
        picture = await documents.read_picture(copy.fileno(), page)
        if picture.content is None:
            raise DocumentUnreadable("It has no pages: it is a picture.")
        return picture
