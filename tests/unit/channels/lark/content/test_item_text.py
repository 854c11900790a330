"""Places, polls, tasks and other things as text."""

from datetime import UTC, datetime
from typing import Any

import pytest

from internal.channels.lark.content.item_text import (
    MAX_BODY_CHARACTERS,
    MAX_FIELD_CHARACTERS,
    MAX_OPTIONS,
    contact_card,
    group_card,
    item_text,
)

START, END = "1793000000000", "1793003600000"
NOTICE = {"template": "{from_user} invited {to_chatters}", "from_user": ["Mei"]}
THINGS = [
    "sticker",
    "location",
    "share_chat",
    "share_user",
    "folder",
    "hongbao",
    "system",
    "calendar",
    "general_calendar",
    "share_calendar_event",
    "video_chat",
    "todo",
    "vote",
]


def local(milliseconds: str) -> str:
    return f"{datetime.fromtimestamp(int(milliseconds) / 1000, UTC).astimezone():%F %H:%M}"


@pytest.mark.parametrize(
    ("kind", "content", "text"),
    [
        ("sticker", {"file_key": "k"}, "[a sticker]"),
        (
            "location",
            {"name": "Pier 7", "longitude": "-122.39", "latitude": "37.79"},
            "[place: Pier 7 (37.79, -122.39)]",
        ),
        ("location", {"name": "Pier\n7"}, "[place: Pier 7]"),
        ("location", {"latitude": "here", "longitude": "1"}, "[a place]"),
        ("share_chat", {"chat_id": "oc_1"}, "[a group card]"),
        ("share_user", {"user_id": "ou_1"}, "[a contact card]"),
        ("folder", {"file_key": "k", "file_name": "Plans"}, "[folder: Plans]"),
        ("hongbao", {"text": "Good luck"}, "[red packet: Good luck]"),
        (
            "system",
            {**NOTICE, "to_chatters": ["Jo", {"name": "Al"}]},
            "[system message: Mei invited Jo, Al]",
        ),
        (
            "system",
            {"template": "{divider_text}", "divider_text": {"text": "New"}},
            "[system message: New]",
        ),
        (
            "calendar",
            {"summary": "Review", "start_time": START, "end_time": END},
            f"[calendar event: Review, {local(START)} to {local(END)}]",
        ),
        ("general_calendar", {"summary": "Review"}, "[calendar event: Review]"),
        (
            "share_calendar_event",
            {"summary": "Review", "start_time": START, "organizer_display_name": "Mei"},
            f"[calendar event: Review, {local(START)}, organized by Mei]",
        ),
        (
            "video_chat",
            {"topic": "Standup", "start_time": START, "meet_number": "123456789"},
            f"[video meeting: Standup, started {local(START)}, meeting number 123456789]",
        ),
        (
            "todo",
            {
                "task_id": "t",
                "summary": {
                    "title": "",
                    "content": [[{"tag": "text", "text": "Buy milk"}], [{"text": "two"}]],
                },
                "due_time": START,
            },
            f"[task: Buy milk, due {local(START)}]\ntwo",
        ),
        ("todo", {"summary": {"title": "Ship"}, "due_time": "0"}, "[task: Ship]"),
        (
            "vote",
            {"topic": "Lunch?", "options": ["Soup", "Rice"]},
            "[poll: Lunch?]\n- Soup\n- Rice",
        ),
    ],
)
def test_a_thing_is_read_as_a_person_sees_it(kind: str, content: dict[str, Any], text: str) -> None:
    assert item_text(kind, content) == text


def test_cards_of_groups_and_people_show_their_names() -> None:
    assert group_card("Product") == "[group card: Product]"
    assert contact_card("Mei Lin") == "[contact card: Mei Lin]"


@pytest.mark.parametrize("kind", THINGS)
@pytest.mark.parametrize(
    "value", [None, 7, True, [], [[[]]], {"a": {}}, {"title": [], "content": [[7], "x"]}, "9" * 60]
)
def test_a_malformed_thing_keeps_its_kind(kind: str, value: object) -> None:
    names = ("name", "summary", "topic", "options", "template", "file_name", "due_time", "text")
    for content in ({}, dict.fromkeys((*names, "start_time", "latitude", "divider_text"), value)):
        text = item_text(kind, content)
        assert text is not None
        assert text.startswith("[")


@pytest.mark.parametrize("kind", THINGS)
def test_a_huge_thing_is_bounded(kind: str) -> None:
    huge = "word " * 100_000
    content: dict[str, Any] = dict.fromkeys(("name", "topic", "template", "file_name"), huge)
    content |= {
        "options": [huge] * 1_000,
        "summary": {"title": huge, "content": [[{"text": huge}]]},
    }
    text = item_text(kind, content)
    assert text is not None
    assert len(text) < MAX_BODY_CHARACTERS + (MAX_OPTIONS + 2) * (MAX_FIELD_CHARACTERS + 10)


def test_options_beyond_the_limit_are_counted() -> None:
    text = item_text("vote", {"topic": "t", "options": [f"o{n}" for n in range(MAX_OPTIONS + 3)]})
    assert text is not None
    assert text.endswith(f"- o{MAX_OPTIONS - 1}\n… 3 more options, not shown")


def test_words_and_files_are_no_things() -> None:
    assert item_text("text", {"text": "hi"}) is None
    assert item_text("file", {"file_key": "k"}) is None
