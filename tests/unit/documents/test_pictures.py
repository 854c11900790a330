"""Size and scaling of pictures."""

import io
import os

import pytest
from PIL import Image

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.pictures import MAX_BYTES, ReadPicture, prepare_picture
from tests.support import documents


def prepared(content: bytes) -> ReadPicture:
    return prepare_picture(io.BytesIO(content))


def opened(picture: ReadPicture) -> Image.Image:
    assert picture.content is not None
    image = Image.open(io.BytesIO(picture.content))
    image.load()
    assert image.get_format_mimetype() == picture.media_type
    assert image.size == (picture.width, picture.height)
    return image


@pytest.mark.parametrize(
    ("form", "media_type"),
    [
        ("PNG", "image/png"),
        ("JPEG", "image/jpeg"),
        ("GIF", "image/gif"),
        ("WEBP", "image/webp"),
    ],
)
def test_a_usual_picture_is_sent_unchanged(form: str, media_type: str) -> None:
    assert prepared(documents.picture(form, (20, 10))) == ReadPicture(media_type, 20, 10, None)


@pytest.mark.parametrize("form", ["BMP", "TIFF"])
def test_other_kinds_become_png(form: str) -> None:
    picture = prepared(documents.picture(form, (20, 10)))
    assert (picture.media_type, opened(picture).getpixel((0, 0))) == ("image/png", (200, 30, 30))


@pytest.mark.parametrize(("form", "size"), [("PNG", (4_000, 1_000)), ("JPEG", (9_000, 2_250))])
def test_a_large_picture_is_scaled(form: str, size: tuple[int, int]) -> None:
    assert opened(prepared(documents.picture(form, size))).size == (1_568, 392)


def test_a_picture_with_too_many_bytes_is_encoded_again() -> None:
    noise = Image.frombytes("RGB", (1_200, 1_200), os.urandom(1_200 * 1_200 * 3))
    output = io.BytesIO()
    noise.save(output, "PNG", compress_level=0)
    assert len(output.getvalue()) > MAX_BYTES
    picture = prepared(output.getvalue())
    assert (picture.media_type, opened(picture).size) == ("image/jpeg", (1_200, 1_200))
    assert len(picture.content or b"") <= MAX_BYTES


def test_a_photograph_is_turned_upright_and_loses_its_metadata() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    exif[0x010F] = "camera"
    image = opened(prepared(documents.picture("JPEG", (30, 10), exif=exif.tobytes())))
    assert image.size == (10, 30)
    assert not image.getexif()


def test_the_first_picture_of_an_animation_is_shown() -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    output = io.BytesIO()
    frames[0].save(output, "GIF", save_all=True, append_images=frames[1:])
    assert opened(prepared(output.getvalue())).convert("RGB").getpixel((0, 0)) == (255, 0, 0)


def test_transparency_and_other_colours_are_kept_or_converted() -> None:
    for mode in ("RGBA", "CMYK", "I;16", "LA"):
        form = "TIFF" if mode in {"CMYK", "I;16"} else "PNG"
        opened_or_same = prepared(documents.picture(form, (3_000, 10), mode=mode))
        assert opened(opened_or_same).width == 1_568


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (documents.picture("PNG", (8_000, 7_000), mode="1"), "8,000 by 7,000 pixels: too many"),
        (documents.picture("JPEG", (600, 600))[:900], "damaged"),
        (documents.picture("PNG", (600, 600))[:120], "damaged"),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "damaged"),
        (b"GIF89a", "damaged"),
    ],
)
def test_bombs_and_damaged_pictures_are_refused(content: bytes, sentence: str) -> None:
    with pytest.raises(DocumentUnreadable, match=sentence):
        prepared(content)


def varied(form: str) -> bytes:
    """A picture in which no two rows are the same."""
    gradient = Image.linear_gradient("L").resize((64, 64)).rotate(45)
    output = io.BytesIO()
    Image.merge("RGB", [gradient, gradient.rotate(90), gradient.rotate(180)]).save(output, form)
    return output.getvalue()


def with_wrong_checksums(png: bytes) -> bytes:
    """Return a PNG with all checksums changed."""
    position, changed = 8, bytearray(png)
    while position < len(png):
        position += 8 + int.from_bytes(png[position : position + 4], "big") + 4
        changed[position - 1] ^= 0xFF
    return bytes(changed)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(with_wrong_checksums(varied("PNG")), id="checksums"),
        pytest.param(with_wrong_checksums(documents.picture("PNG")), id="one colour"),
        pytest.param(varied("PNG")[:-12], id="no IEND"),
        pytest.param(varied("PNG")[:-16], id="no IEND and no last checksum"),
        pytest.param(varied("PNG")[:-200], id="the last rows of a PNG"),
        pytest.param(with_wrong_checksums(varied("PNG")) + b"more", id="trailing bytes"),
        pytest.param(documents.picture("JPEG")[:-2], id="no end of a JPEG"),
        pytest.param(varied("JPEG")[:-100], id="the last rows of a JPEG"),
        pytest.param(varied("GIF")[:-3], id="the end of a GIF"),
    ],
)
def test_a_slightly_wrong_picture_is_shown(content: bytes) -> None:
    picture = prepared(content)
    image = opened(picture) if picture.content else Image.open(io.BytesIO(content))
    assert image.size in {(64, 64), (8, 8)}
    assert len(set(image.convert("RGB").resize((2, 2)).tobytes())) > 1
