"""Content of a message: its text as Markdown, and its files."""

import json

import pytest

from internal.channels.lark.content.files import LarkFile
from internal.channels.lark.content.message_content import (
    Mention,
    MessageContent,
    read_content,
    without_paragraph_tags,
)

BOT = "ou_bot"


def read(content: object, kind: str = "text", *mentions: Mention) -> MessageContent | None:
    body = content if isinstance(content, str) else json.dumps(content)
    return read_content(kind, body, mentions, bot=BOT)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"text": "hello"}, "hello"),
        ({"text": "@_user_1 hi @_user_10 and @_user_2"}, "hi @Ten and @Two"),
        ({"text": "@_all hear"}, "@all hear"),
        ({"text": "@_user_77 who"}, "@_user_77 who"),
        ({"text": "  "}, ""),
        ({"text": None}, ""),
        ({"other": 1}, ""),
        ([1], ""),
        ("{", ""),
        ("", ""),
    ],
)
def test_a_text_is_read_with_its_mentions(content: object, said: str) -> None:
    mentions = (
        Mention("@_user_1", BOT, "Larkspur"),
        Mention("@_user_2", "ou_2", "Two"),
        Mention("@_user_10", "ou_10", "@_user_2"),
    )
    named = [each._replace(name="Ten") if each.key == "@_user_10" else each for each in mentions]
    assert read(content, "text", *named) == MessageContent(said)


CODE = "def pay(x):\n    if x > 0:\n\treturn  {'a':   1}\n\na:\n  - b:    c"


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (f"@_user_1 fix:\n{CODE}", f"fix:\n{CODE}"),
        (f"@_user_1\n{CODE}", CODE),
        (f"@_user_1     x = 1\n{CODE}", f"    x = 1\n{CODE}"),
        (f"{CODE}\n@_user_1", CODE),
        (f"{CODE} @_user_1", CODE),
        (f"{CODE}\n@_user_1 why?", f"{CODE}\nwhy?"),
        (f"ask @_user_1 and @_user_1 now\n{CODE}", f"ask and now\n{CODE}"),
        (f"@_user_2 @_user_1\n{CODE}", f"@Two\n{CODE}"),
        (f"    @_user_1\n{CODE}", f"    \n{CODE}"),
        ("请@_user_1 看：\n  一", "请看：\n  一"),  # noqa: RUF001 - so people write
        ("ask @_user_1, please", "ask, please"),
        ("@_user_1\u00a0a  b", "a  b"),
        ("@_user_1", ""),
        (" @_user_1 \n", ""),
    ],
)
def test_only_a_mention_and_the_blank_beside_it_are_removed(sent: str, said: str) -> None:
    mentions = (Mention("@_user_1", BOT, "Larkspur"), Mention("@_user_2", "ou_2", "Two"))
    assert read({"text": sent}, "text", *mentions) == MessageContent(said)


def test_code_in_a_post_stays_as_it_is() -> None:
    lines = [[{"tag": "text", "text": line}] for line in CODE.split("\n")]
    lines[0].insert(0, {"tag": "text", "text": " "})
    lines[0].insert(0, {"tag": "at", "user_id": "@_user_1", "user_name": "Larkspur"})
    mention = Mention("@_user_1", BOT, "Larkspur")
    assert read({"content": lines}, "post", mention) == MessageContent(CODE)


def test_a_name_that_looks_like_a_key_stays_a_name() -> None:
    mentions = (Mention("@_user_1", "ou_1", "_user_2\n#"), Mention("@_user_2", "ou_2", "Two"))
    said = read({"text": "@_user_1 @_user_2"}, "text", *mentions)
    assert said == MessageContent("@_user_2 # @Two")


def test_a_post_becomes_markdown_and_names_its_files() -> None:
    content = {
        "title": "Plan",
        "content": [
            [
                {"tag": "text", "text": "bold ", "style": ["bold"]},
                {"tag": "a", "text": "here", "href": "https://a.example"},
                {"tag": "at", "user_id": "@_user_1", "user_name": "Larkspur"},
                {"tag": "at", "user_id": "@_user_2", "user_name": "Two"},
                {"tag": "at", "user_id": "all"},
            ],
            [{"tag": "img", "image_key": "k"}, {"tag": "emotion", "emoji_type": "SMILE"}],
            [{"tag": "code_block", "language": "PYTHON", "text": "x = 1"}],
            [{"tag": "hr"}, {"tag": "media", "file_key": "v", "image_key": "cover"}],
            [{"tag": "img", "image_key": "k2"}, {"tag": "new", "text": "?"}, 7],
            "no row",
        ],
    }
    mentions = (Mention("@_user_1", BOT, "L"), Mention("@_user_2", "ou_2", "Two"))
    read_post = read(content, "post", *mentions)
    assert read_post is not None
    text = read_post.text
    assert text.startswith("# Plan\n\n**bold **[here](https://a.example)@Two@all")
    assert "[picture-1]:SMILE:" in text
    assert "```python\nx = 1\n```" in text
    assert "---\n[video]\n[picture-2]?" in text
    assert read_post.files == (
        LarkFile("k", "image", "picture-1"),
        LarkFile("v", "file", "video"),
        LarkFile("k2", "image", "picture-2"),
    )
    assert read({"zh_cn": content}, "post", *mentions) == read_post
    assert read({"content": "x", "title": 3}, "post") == MessageContent("")


@pytest.mark.parametrize(
    ("kind", "content", "file"),
    [
        ("image", {"image_key": "k"}, LarkFile("k", "image", "picture")),
        ("file", {"file_key": "k", "file_name": "a.pdf"}, LarkFile("k", "file", "a.pdf")),
        ("file", {"file_key": "k"}, LarkFile("k", "file", "file")),
        (
            "audio",
            {"file_key": "k", "duration": 1200},
            LarkFile("k", "file", "voice-message.ogg", "audio/ogg"),
        ),
        (
            "media",
            {"file_key": "k", "image_key": "cover", "file_name": "a.mp4"},
            LarkFile("k", "file", "a.mp4"),
        ),
    ],
)
def test_a_message_may_be_a_file(kind: str, content: object, file: LarkFile) -> None:
    assert read(content, kind) == MessageContent("", (file,))


@pytest.mark.parametrize("content", ["", "[]", {}, {"image_key": 7}, {"image_key": "k" * 257}])
def test_a_file_without_a_usable_key_is_left_out(content: object) -> None:
    assert read(content, "image") == MessageContent("")


def test_earlier_files_without_a_name_get_another_one() -> None:
    found = read_content("image", '{"image_key": "k"}', (), prefix="earlier-")
    assert found == MessageContent("", (LarkFile("k", "image", "earlier-picture"),))


@pytest.mark.parametrize("kind", ["hologram", ""])
def test_unknown_kinds_have_no_content(kind: str) -> None:
    assert read({}, kind) is None


def test_forwarded_messages_and_unreadable_cards_are_empty() -> None:
    assert read({"content": "Merged and Forwarded Message"}, "merge_forward") == MessageContent("")
    upgrade = "\u8bf7\u5347\u7ea7\u81f3\u6700\u65b0\u7248\u672c\u5ba2\u6237\u7aef"
    assert read({"elements": [[{"tag": "text", "text": upgrade}]]}, "interactive") == (
        MessageContent("")
    )


@pytest.mark.parametrize("depth", [100, 100_000])
@pytest.mark.parametrize("kind", ["text", "post", "interactive", "todo", "location"])
def test_deeply_nested_content_is_read_without_failure(kind: str, depth: int) -> None:
    content = f'{{"text": {"[" * depth}{"]" * depth}, "content": {"[" * depth}{"]" * depth}}}'
    found = read(content, kind)
    assert found is not None
    assert len(found.text) < 20


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<p>hello</p>", "hello"),
        ("<p>one</p><p>two</p>", "one\ntwo"),
        ("<p>one</p>\n<p>two</p>", "one\ntwo"),
        ("<p>def f():</p><p>    return  1</p>", "def f():\n    return  1"),
        ("a <p>b</p>", "a <p>b</p>"),
        ("<p>", "<p>"),
        ("", ""),
    ],
)
def test_the_paragraph_tags_of_an_edited_text_are_left_out(text: str, shown: str) -> None:
    assert without_paragraph_tags(text) == shown
