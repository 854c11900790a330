"""Pictures of phones: HEIC, and AVIF."""

from typing import BinaryIO

import pi_heif  # type: ignore[import-untyped]  # it has no type hints
from PIL import AvifImagePlugin

from internal.documents.pictures import ReadPicture, prepare_picture

AvifImagePlugin.DEFAULT_MAX_THREADS = 1
pi_heif.register_heif_opener(thumbnails=False, decode_threads=1)


def prepare_heif(file: BinaryIO) -> ReadPicture:
    """Convert a picture to one that providers accept.

    Raises:
        DocumentUnreadable: it is damaged or too large.
    """
    return prepare_picture(file, further_formats=("HEIF", "AVIF"))
