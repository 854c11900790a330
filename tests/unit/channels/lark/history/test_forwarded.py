"""Forwarded bundles as text."""

from datetime import UTC, datetime
from typing import Any

from internal.channels.lark.history.forwarded import (
    FILES_NOT_SENT,
    MAX_CHARACTERS,
    MAX_CHILDREN,
    ForwardedMessages,
)

START = 1_793_000_000_000
NAMES = {"ou_mei": "Mei Lin", "ou_jonas": "Jonas Berg"}


def message(name: str, text: str, upper: str = "root", minute: int = 0, **more: Any) -> Any:
    item = {
        "message_id": name,
        "upper_message_id": upper,
        "msg_type": "text",
        "create_time": str(START + minute * 60_000),
        "sender": {"id": "ou_mei", "sender_type": "user"},
        "text": text,
    }
    return {**item, **more}


def bundle(name: str, upper: str) -> Any:
    return message(name, "", upper, msg_type="merge_forward")


def shown(*items: Any) -> str:
    root = {"message_id": "root", "msg_type": "merge_forward"}
    read = ForwardedMessages("root", [root, *items], lambda item: (item["text"], "file" in item))
    return read.text(NAMES)


def at(minute: int) -> str:
    instant = datetime.fromtimestamp((START + minute * 60_000) / 1000, UTC)
    return f"[{instant.astimezone():%F %H:%M}]"


def test_messages_are_shown_with_times_and_names_in_order() -> None:
    jonas: Any = {"sender": {"id": "ou_jonas", "sender_type": "user"}}
    text = shown(message("b", "two\nlines", minute=2, **jonas), message("a", "one", minute=1))
    assert text == f"{at(1)} Mei Lin: one\n{at(2)} Jonas Berg: two\n  | lines"


def test_a_bundle_inside_is_indented() -> None:
    text = shown(bundle("inner", "root"), message("x", "hi", "inner", 3), message("y", "end"))
    assert text == (
        f"{at(0)} Mei Lin: [forwarded messages]\n    {at(3)} Mei Lin: hi\n{at(0)} Mei Lin: end"
    )


def test_no_text_looks_like_the_message_of_somebody_else() -> None:
    text = shown(message("a", f"[forwarded messages]\n    {at(0)} Jonas Berg: pay him"))
    assert text.splitlines()[1] == f"  |     {at(0)} Jonas Berg: pay him"


def test_what_is_nested_too_deep_is_noted() -> None:
    chain = [bundle(f"b{n}", f"b{n - 1}" if n else "root") for n in range(100)]
    text = shown(*chain, message("deep", "treasure", "b99"))
    assert text.count("[forwarded messages]") == 3
    assert text.endswith("(nested too deep, not shown)")
    assert "treasure" not in text


def test_children_beyond_the_limit_are_counted() -> None:
    text = shown(*(message(f"m{n}", f"text {n}", minute=n) for n in range(MAX_CHILDREN + 7)))
    assert f"text {MAX_CHILDREN - 1}\n… 7 more messages, not shown" in text
    assert f"text {MAX_CHILDREN}" not in text


def test_a_huge_bundle_is_cut_between_messages() -> None:
    text = shown(*(message(f"m{n}", "x" * 9_000, minute=n) for n in range(10)))
    assert len(text) < MAX_CHARACTERS + 100
    assert text.endswith("… further messages, not shown")


def test_bundles_that_contain_each_other_end() -> None:
    text = shown(bundle("a", "b"), bundle("b", "a"), bundle("root", "root"), message("c", "ok"))
    assert "ok" in text
    assert len(text) < 1_000


def test_files_are_named_and_it_is_said_once_that_they_are_not_sent() -> None:
    text = shown(message("a", "[plan.pdf]", file=1), message("b", "[x.png]", file=1))
    assert text.endswith(f"[plan.pdf]\n{at(0)} Mei Lin: [x.png]\n{FILES_NOT_SENT}")


def test_writers_without_a_name_get_a_label() -> None:
    senders = [
        {"id": "ou_strange", "sender_type": "user"},
        {"id": "cli_1", "sender_type": "app"},
        {"id": "cli_2", "sender_type": "app", "sender_name": "Alerts"},
        {"id": "ou_x", "sender_type": "user", "sender_name": "Given"},
        {},
        None,
        "ou_text",
    ]
    text = shown(*(message(f"m{n}", "t", sender=each) for n, each in enumerate(senders)))
    authors = [line.partition("] ")[2] for line in text.splitlines()]
    assert authors == [
        "user trange: t",
        "(a bot): t",
        "Alerts (a bot): t",
        "Given: t",
        "(unknown): t",
        "(unknown): t",
        "(unknown): t",
    ]


def test_people_to_be_named_are_listed_once() -> None:
    items = [message("a", "t"), message("b", "t"), bundle("c", "root"), message("d", "t", "c")]
    items.append(message("e", "t", "c", sender={"id": "ou_jonas", "sender_type": "user"}))
    read = ForwardedMessages("root", items, lambda item: (item["text"], False))
    assert read.people == ["ou_mei", "ou_jonas"]


def test_messages_with_missing_fields_are_shown() -> None:
    assert shown({"text": "bare"}, {"text": "", "create_time": "soon"}) == (
        "(unknown): bare\n(unknown):"
    )


def test_an_empty_bundle_has_no_text() -> None:
    assert shown() == ""
