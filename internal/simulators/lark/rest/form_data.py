"""Parser of `multipart/form-data` bodies (python-multipart), as strict as Lark."""

from typing import NamedTuple

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from internal.simulators.lark.errors import BODY_INVALID, LarkError


class FormField(NamedTuple):
    """A form field; `file_name` is "" unless it is a file."""

    data: bytes
    file_name: str = ""


def read_form(content_type: str, body: bytes) -> dict[str, FormField]:
    """Return the fields of a form by name.

    Raises:
        LarkError: The body is not a complete form, or a part has no name.
    """
    media_type, options = parse_options_header(content_type)
    boundary = options.get(b"boundary")
    if media_type != b"multipart/form-data" or not boundary:
        raise LarkError(BODY_INVALID, "the body is not multipart/form-data")
    form = _FormBuilder()
    try:
        MultipartParser(
            boundary,
            {
                "on_part_begin": form.begin_part,
                "on_header_field": form.add_header_name,
                "on_header_value": form.add_header_value,
                "on_header_end": form.end_header,
                "on_part_data": form.add_data,
                "on_part_end": form.end_part,
                "on_end": form.end,
            },
        ).write(body)
    except FormParserError as error:
        raise LarkError(BODY_INVALID, f"the form is malformed: {error}") from error
    if not form.is_complete:
        raise LarkError(BODY_INVALID, "the form is incomplete")
    return form.fields


class _FormBuilder:
    """Collect fields from the parser's callbacks."""

    def __init__(self) -> None:
        self.fields: dict[str, FormField] = {}
        self.is_complete = False
        self.begin_part()

    def begin_part(self) -> None:
        self._header_name, self._header_value, self._data = bytearray(), bytearray(), bytearray()
        self._disposition = b""

    def add_header_name(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def add_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def end_header(self) -> None:
        if self._header_name.lower() == b"content-disposition":
            self._disposition = bytes(self._header_value)
        self._header_name, self._header_value = bytearray(), bytearray()

    def add_data(self, data: bytes, start: int, end: int) -> None:
        self._data += data[start:end]

    def end_part(self) -> None:
        _, options = parse_options_header(self._disposition)
        name, file_name = options.get(b"name"), options.get(b"filename", b"")
        if name is None:
            raise LarkError(BODY_INVALID, "a part of the form has no name")
        field = FormField(bytes(self._data), file_name.decode("utf-8", "replace"))
        self.fields[name.decode("utf-8", "replace")] = field

    def end(self) -> None:
        self.is_complete = True
