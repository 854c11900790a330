import pytest

from internal.simulators.lark.errors import LarkError
from internal.simulators.lark.rest.im_media import (
    get_file,
    image_type,
    media_result,
    store_file,
    store_image,
)
from tests.unit.simulators.lark import APP, make_call, make_state

PNG = b"\x89PNG\r\n\x1a\n"


def test_an_image_is_recognised_by_its_first_bytes() -> None:
    state = make_state()
    assert image_type(PNG) == "image/png"
    image = store_image(state, PNG)
    assert media_result(image).media_type == "image/png"
    for data in (b"", b"text"):
        with pytest.raises(LarkError):
            store_image(state, data)


def test_an_app_downloads_only_its_own_uploads() -> None:
    state = make_state()
    own = store_file(state, "a.txt", b"x", app_id=APP.app_id)
    assert get_file(state, make_call(key=own.key)).data == b"x"
    for key in (store_file(state, "b.txt", b"x").key, "unknown"):
        with pytest.raises(LarkError):
            get_file(state, make_call(key=key))
