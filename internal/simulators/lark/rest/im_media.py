"""Images and files: uploads by bots, and downloads."""

from internal.simulators.lark.errors import LarkError
from internal.simulators.lark.model import Json, Media, new_id
from internal.simulators.lark.rest import scopes
from internal.simulators.lark.rest.call import BinaryResult, RestCall, RestEndpoint
from internal.simulators.lark.rest.form_data import FormField
from internal.simulators.lark.state import LarkState

BAD, NOT_IN_MESSAGE, TOO_BIG, NOT_OWNER, EMPTY, NO_IMAGE = (
    *(234001, 234003, 234006),
    *(234008, 234010, 234011),
)
OVER_100_MB, OF_A_CARD = 234037, 234043
MAX_IMAGE_BYTES, MAX_FILE_BYTES = 10 * 1024 * 1024, 30 * 1024 * 1024
"""The largest uploads of an app."""
MAX_DOWNLOAD_BYTES = 100 * 1024 * 1024
_IMAGES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
    b"BM": "image/bmp",
    b"II*\x00": "image/tiff",
    b"MM\x00*": "image/tiff",
    b"\x00\x00\x01\x00": "image/x-icon",
}
_FILE_TYPES = frozenset({"opus", "mp4", "pdf", "doc", "xls", "ppt", "stream"})


def image_type(data: bytes) -> str:
    """Return the media type according to the first bytes, or ""."""
    return next((kind for start, kind in _IMAGES.items() if data.startswith(start)), "")


def store_image(state: LarkState, data: bytes, *, app_id: str = "") -> Media:
    """Store an image.

    Raises:
        LarkError: It is empty, too large or not an image.
    """
    _check_size(data, MAX_IMAGE_BYTES)
    if not image_type(data):
        raise LarkError(NO_IMAGE, "The file is not an image.")
    return _keep(state, Media(new_id("img_v3"), "image", "", data, app_id))


def store_file(state: LarkState, name: str, data: bytes, *, app_id: str = "") -> Media:
    """Store a file of a person or, with `app_id`, of an app.

    Raises:
        LarkError: It is empty, or too large for an app.
    """
    _check_size(data, MAX_FILE_BYTES if app_id else len(data))
    return _keep(state, Media(new_id("file_v3"), "file", name, data, app_id))


def _keep(state: LarkState, media: Media) -> Media:
    state.media[media.key] = media
    return media


def _check_size(data: bytes, largest: int) -> None:
    if not data:
        raise LarkError(EMPTY, "The file is empty.")
    if len(data) > largest:
        raise LarkError(TOO_BIG, f"The file is larger than {largest} bytes.")


def create_image(state: LarkState, call: RestCall) -> Json:
    """Upload an image."""
    if _field(call, "image_type") not in {"message", "avatar"}:
        raise LarkError(BAD, "image_type is invalid")
    image = call.form.get("image", FormField(b""))
    return {"image_key": store_image(state, image.data, app_id=call.app.app_id).key}


def create_file(state: LarkState, call: RestCall) -> Json:
    """Upload a file."""
    if _field(call, "file_type") not in _FILE_TYPES:
        raise LarkError(BAD, "file_type is invalid")
    name = _field(call, "file_name")
    file = call.form.get("file", FormField(b""))
    if not name:
        raise LarkError(BAD, "file_name is missing")
    return {"file_key": store_file(state, name, file.data, app_id=call.app.app_id).key}


def _field(call: RestCall, name: str) -> str:
    return call.form.get(name, FormField(b"")).data.decode("utf-8", "replace")


def get_image(state: LarkState, call: RestCall) -> BinaryResult:
    """Return an image that the app uploaded."""
    return _own(state, call, "image")


def get_file(state: LarkState, call: RestCall) -> BinaryResult:
    """Return a file that the app uploaded."""
    return _own(state, call, "file")


def _own(state: LarkState, call: RestCall, kind: str) -> BinaryResult:
    media = state.media.get(call.path["key"])
    if media is None or media.kind != kind:
        raise LarkError(BAD, f"invalid {kind}_key")
    if media.app_id != call.app.app_id:
        raise LarkError(NOT_OWNER, "The app is not the owner of the resource.")
    return media_result(media)


def media_result(media: Media) -> BinaryResult:
    """Return the download of an image or a file."""
    kind = image_type(media.data) if media.kind == "image" else "application/octet-stream"
    return BinaryResult(media.data, kind, media.name or f"{media.key}.{kind.rpartition('/')[2]}")


def get_resource(state: LarkState, call: RestCall) -> BinaryResult:
    """Return an image or file of a message."""
    kind = call.choice("type", frozenset({"image", "file"}))
    message = state.message(call.app, call.path["message_id"])
    if message.msg_type in {"interactive", "merge_forward"}:
        raise LarkError(OF_A_CARD, "Resources of cards and merged messages are not supported.")
    media = state.media.get(call.path["key"])
    if media is None or media.kind != kind or f'"{media.key}"' not in message.content:
        raise LarkError(NOT_IN_MESSAGE, "The file is not in the message.")
    if len(media.data) > MAX_DOWNLOAD_BYTES:
        raise LarkError(OVER_100_MB, "The file is larger than 100 MB.")
    return media_result(media)


_ROOT = "/open-apis/im/v1"
_RESOURCE = _ROOT + "/messages/{message_id}/resources/{key}"
ENDPOINTS = (
    RestEndpoint("POST", _ROOT + "/images", create_image, scopes.MEDIA),
    RestEndpoint("GET", _ROOT + "/images/{key}", get_image, scopes.OWN_MEDIA),
    RestEndpoint("POST", _ROOT + "/files", create_file, scopes.MEDIA),
    RestEndpoint("GET", _ROOT + "/files/{key}", get_file, scopes.OWN_MEDIA),
    RestEndpoint("GET", _RESOURCE, get_resource, scopes.READ),
)
