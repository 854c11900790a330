"""Pictures: their size, and a form that model providers accept."""

import io
from typing import Any, BinaryIO, NamedTuple

from PIL import Image, ImageFile, ImageOps, MpoImagePlugin, TiffImagePlugin, WebPImagePlugin

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.picture_repair import repaired

MAX_BYTES = 3_750_000
"""The limit of Anthropic is 5 MB in base64, which is a third longer than the bytes."""
MAX_SIDE = 2_000
"""Pixels of the longer side that are sent unchanged: the limit of requests with many pictures."""
SCALED_SIDE = 1_568
"""Size to which larger pictures are scaled: providers scale them to it themselves."""
MAX_PIXELS = 50_000_000
MAX_JPEG_PIXELS = 200_000_000
"""More for JPEG, which is decoded at a fraction of its size."""

# Pillow imports the readers of formats when it needs them, and the child can import nothing then.
Image.preinit()  # PNG, JPEG, GIF, BMP
_IMPORTED = (MpoImagePlugin, TiffImagePlugin, WebPImagePlugin)
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")  # MPO begins as JPEG
_UNCHANGED = {
    "PNG": "image/png",
    "JPEG": "image/jpeg",
    "MPO": "image/jpeg",
    "GIF": "image/gif",
    "WEBP": "image/webp",
}
_UNCHANGED_MODES = frozenset({"1", "L", "LA", "P", "RGB", "RGBA"})
_ORIENTATION_TAG = 0x0112
_JPEG_QUALITY = 85
_FILL = 128  # the grey of JPEG without data
_MAX_PAGE_SCALE = 4.0  # of 72 dots per inch
_PILLOW_ERRORS = (OSError, SyntaxError, ValueError, TypeError, EOFError)


class ReadPicture(NamedTuple):
    """A picture in its form for the model; `content` is None if the file itself is sent."""

    media_type: str
    width: int
    height: int
    content: bytes | None


def prepare_picture(file: BinaryIO, *, further_formats: tuple[str, ...] = ()) -> ReadPicture:
    """Check a picture by decoding it, and convert or scale it if providers would not accept it.

    One that is slightly wrong is repaired, as viewers do.

    Raises:
        DocumentUnreadable: it is damaged, too large or of an unknown kind.
    """
    Image.MAX_IMAGE_PIXELS = None  # checked below
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    try:
        with Image.open(file, formats=(*_FORMATS, *further_formats)) as image:
            _check_pixels(image)
            return _prepared(image, size)
    except DocumentUnreadable:
        raise
    except _PILLOW_ERRORS as error:
        file.seek(0)
        picture = _repaired(file.read())
        if picture is None:
            raise DocumentUnreadable("The picture is damaged: it cannot be decoded.") from error
        return picture


def _repaired(content: bytes) -> ReadPicture | None:
    """Return a picture that is slightly wrong in another form; None if too much of it is missing.

    Raises:
        DocumentUnreadable: it has too many pixels.
    """
    whole = repaired(content)
    for accepts_missing in (False, True):
        ImageFile.LOAD_TRUNCATED_IMAGES = accepts_missing
        try:
            with Image.open(io.BytesIO(whole), formats=_FORMATS) as image:
                _check_pixels(image)
                image.load()
                is_photograph = image.format in {"JPEG", "MPO"}
                # the JPEG decoder fills missing parts without an error
                if (accepts_missing or is_photograph) and _lacks_half(image):
                    return None
                return _converted(image, is_photograph=is_photograph)
        except _PILLOW_ERRORS:
            continue
        finally:
            ImageFile.LOAD_TRUNCATED_IMAGES = False
    return None


def _lacks_half(image: Image.Image) -> bool:
    """Return True if the lower half has a decoder's fill colour: grey for JPEG, else one colour."""
    half = image.crop((0, image.height // 2, image.width, image.height)).convert("RGB")
    colours = half.getcolors(maxcolors=1)  # None for more
    if image.format in {"JPEG", "MPO"}:
        return colours is not None and colours[0][1] == (_FILL,) * 3
    return colours is not None


def picture_of_page(document: Any, number: int) -> ReadPicture:
    """Return a page of an open PDF as a picture; pages are counted from 1.

    Raises:
        DocumentUnreadable: there is no such page, or it is damaged.
    """
    if not 1 <= number <= len(document):
        raise DocumentUnreadable(
            f"The PDF has {len(document):,} pages: there is no page {number:,}."
        )
    try:
        page = document[number - 1]
        longer = max(page.get_size())
        image = page.render(scale=min(SCALED_SIDE / max(longer, 1), _MAX_PAGE_SCALE)).to_pil()
    except RuntimeError as error:  # of pypdfium2
        raise DocumentUnreadable(f"Page {number:,} of the PDF is damaged.") from error
    return _converted(image, is_photograph=False)


def _check_pixels(image: Image.Image) -> None:
    pixels = image.width * image.height
    limit = MAX_JPEG_PIXELS if image.format in {"JPEG", "MPO"} else MAX_PIXELS
    if pixels > limit:
        raise DocumentUnreadable(
            f"The picture has {image.width:,} by {image.height:,} pixels: too many to decode."
        )


def _prepared(image: Image.Image, size: int) -> ReadPicture:
    kind, width, height = image.format or "", image.width, image.height
    upright = image.getexif().get(_ORIENTATION_TAG, 1) == 1
    animated = kind != "MPO" and getattr(image, "n_frames", 1) > 1
    if (
        kind in _UNCHANGED
        and upright
        and not animated
        and size <= MAX_BYTES
        and max(width, height) <= MAX_SIDE
        and image.mode in _UNCHANGED_MODES
    ):
        image.load()
        return ReadPicture(_UNCHANGED[kind], width, height, None)
    return _converted(image, is_photograph=kind in {"AVIF", "HEIF", "JPEG", "MPO"})


def _converted(image: Image.Image, *, is_photograph: bool) -> ReadPicture:
    if max(image.width, image.height) > MAX_SIDE:
        image.draft(None, (SCALED_SIDE, SCALED_SIDE))  # JPEG only: decoded at a fraction
    image.load()
    if image.mode not in {"L", "RGB", "RGBA"}:
        has_alpha = image.has_transparency_data
        image = image.convert("RGBA" if has_alpha else "RGB")
    if max(image.width, image.height) > MAX_SIDE:
        image.thumbnail((SCALED_SIDE, SCALED_SIDE), reducing_gap=2.0)
    ImageOps.exif_transpose(image, in_place=True)
    content = b"" if is_photograph else _encoded(image, "PNG")
    if content and len(content) <= MAX_BYTES:
        return ReadPicture("image/png", image.width, image.height, content)
    content = _encoded(_on_white(image), "JPEG")
    return ReadPicture("image/jpeg", image.width, image.height, content)


def _on_white(image: Image.Image) -> Image.Image:
    if image.mode != "RGBA":
        return image.convert("RGB")
    white = Image.new("RGB", image.size, "white")
    white.paste(image, mask=image.getchannel("A"))
    return white


def _encoded(image: Image.Image, kind: str) -> bytes:
    output = io.BytesIO()
    image.info = {}  # no metadata, such as where a photograph was taken
    image.save(output, kind, quality=_JPEG_QUALITY)
    return output.getvalue()
