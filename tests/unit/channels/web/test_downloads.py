"""The names of downloads."""

import pytest

from internal.channels.web.downloads import content_disposition


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("a.txt", "attachment; filename=\"a.txt\"; filename*=UTF-8''a.txt"),
        ("charts/q1.png", "attachment; filename=\"q1.png\"; filename*=UTF-8''q1.png"),
        ("報告.md", "attachment; filename=\"__.md\"; filename*=UTF-8''%E5%A0%B1%E5%91%8A.md"),
        ('a"b;%1.md', "attachment; filename=\"a_b;_1.md\"; filename*=UTF-8''a%22b%3B%251.md"),
        ("a\r\nb", "attachment; filename=\"a__b\"; filename*=UTF-8''a%0D%0Ab"),
    ],
)  # fmt: skip
def test_a_name_is_safe_in_a_header(name: str, header: str) -> None:
    assert content_disposition(name) == header
    assert content_disposition(name, inline=True) == header.replace("attachment", "inline", 1)
