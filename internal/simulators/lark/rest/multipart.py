"""`multipart/form-data`, as much of it as uploads use."""

import re
from typing import NamedTuple

from internal.simulators.lark.errors import BODY_INVALID, LarkError

_BOUNDARY = re.compile(r'multipart/form-data\s*;.*boundary="?([^";,]{1,200})"?', re.IGNORECASE)
_NAME = re.compile(r'[; ]name="([^"]*)"')
_FILE = re.compile(r'[; ]filename="([^"]*)"')


class FormField(NamedTuple):
    """A field of a form; `file_name` is "" where it is no file."""

    data: bytes
    file_name: str = ""


def read_form(content_type: str, body: bytes) -> dict[str, FormField]:
    """Return the fields by name.

    Raises:
        LarkError: it is no such form.
    """
    found = _BOUNDARY.match(content_type)
    if found is None:
        raise LarkError(BODY_INVALID, "the body is not multipart/form-data")
    mark = b"\r\n--" + found[1].strip().encode("latin-1", "replace")
    pieces = (b"\r\n" + body).split(mark)
    if len(pieces) < 3 or not pieces[-1].startswith(b"--"):  # noqa: PLR2004 - before, one, after
        raise LarkError(BODY_INVALID, "the form is cut")
    fields: dict[str, FormField] = {}
    for piece in pieces[1:-1]:
        head, gap, data = piece.partition(b"\r\n\r\n")
        line = head.decode("utf-8", "replace")
        name = _NAME.search(line)
        if not gap or name is None:
            raise LarkError(BODY_INVALID, "a part of the form has no name")
        file_name = _FILE.search(line)
        fields[name[1]] = FormField(data, file_name[1] if file_name else "")
    return fields
