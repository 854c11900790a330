"""Transcripts of conversations, and their hashes."""

import pytest

from internal.channels.web.completions.messages import (
    ConversationMessage,
    MessageRole,
    SentFile,
    Unreadable,
)
from internal.channels.web.completions.transcripts import (
    MAX_TRANSCRIPT_CHARACTERS,
    MIN_DISTINCT_CHARACTERS,
    loose_hash,
    message_splits,
    prompt_with_transcript,
    transcript_hash,
    transcript_hashes,
)


def said(role: MessageRole, *parts: str | SentFile | Unreadable) -> ConversationMessage:
    return ConversationMessage(role, parts)


HI, HELLO = said("user", "hi there"), said("assistant", "Hello.\n\nHow are you?")
(KNOWN,) = transcript_hashes("", [HI], {"Hello.\n\nHow are you?"})


@pytest.mark.parametrize(
    "messages",
    [
        [HI, HELLO],
        [said("instructions", "It is 10:01."), HI, HELLO],
        [said("user", "hi", "there "), said("assistant", "Hello. How are you?\r\n")],
        [said("user", "hi there", SentFile("image", "data:")), HELLO],
        [HI, said("tool", "12 degrees"), said("assistant"), HELLO],
        [HI, said("assistant", "<think>\nhm\n</think>\nHello.\n\nHow are you?")],
        [
            HI,
            said("assistant", '<details type="reasoning" done="true">\nhm</details>Hello.'),
            said("assistant", "How are you?"),
        ],
    ],
)
def test_what_programs_change_leaves_the_hash(messages: list[ConversationMessage]) -> None:
    assert transcript_hash("", messages) == KNOWN


@pytest.mark.parametrize(
    ("user", "messages"),
    [
        ("ann", [HI, HELLO]),
        ("", [HI]),
        ("", [HELLO, HI]),
        ("", [HI, said("assistant", "Hello.")]),
        ("", [said("user", "hi there", "Hello. How are you?")]),
    ],
)
def test_other_conversations_have_other_hashes(
    user: str, messages: list[ConversationMessage]
) -> None:
    assert transcript_hash(user, messages) != KNOWN


def test_a_long_answer_is_known_whatever_was_added_to_the_message_before_it() -> None:
    answer = "word " * MIN_DISTINCT_CHARACTERS
    asked = said("user", "hi", "Context: three pages")
    known = transcript_hashes("", [HI, HELLO, asked], {answer})
    later = [HI, HELLO, said("user", "hi"), said("assistant", answer)]
    assert transcript_hash("", later) not in known
    assert loose_hash("", later) in known
    assert loose_hash("ann", later) not in known
    assert loose_hash("", [said("user", "ho"), *later[1:]]) not in known
    assert loose_hash("", [HI, HELLO]) == loose_hash("", [HI]) == loose_hash("", []) == ""


def test_thoughts_without_an_end_stay_and_take_no_long_time() -> None:
    text = "<think>" * 100_000 + "</THINKING>"
    assert transcript_hash("", [said("user", text)]) != transcript_hash("", [HI])
    without = transcript_hash("", [said("user", "ab")])
    assert transcript_hash("", [said("user", "a<Think>x<think></THINK>b")]) == without


def test_the_last_message_is_new_and_so_may_be_those_that_nobody_answered() -> None:
    assert [*message_splits([HI])] == []
    assert [*message_splits([HI, HELLO, HI])] == [([HI, HELLO], [HI])]
    more = [HI, HELLO, HI, HI]
    assert [*message_splits(more)] == [(more[:3], more[3:]), (more[:2], more[2:])]


def test_a_transcript_names_what_is_not_text() -> None:
    picture = SentFile("image", "data:")
    earlier = [
        said("user", "see", picture, "this", SentFile("image", "https://a"), Unreadable("video")),
        ConversationMessage("assistant", (), "(called f: {})"),
        said("tool", "12"),
    ]
    names = {picture: "image-1.png"}
    prompt = prompt_with_transcript(earlier, "now", lambda file: names.get(file, ""))
    assert prompt == (
        "The conversation so far:\n\n"
        "user: see\n[image-1.png]\nthis\n[image that was not sent along]\n[video]\n\n"
        "assistant: (called f: {})\n\ntool: 12\n\nMy message now:\n\nnow"
    )
    assert prompt_with_transcript([said("user", " ")], "now", lambda _file: "") == ""


def test_a_long_transcript_keeps_the_newest_messages() -> None:
    long = said("user", "x" * (MAX_TRANSCRIPT_CHARACTERS - 20))
    prompt = prompt_with_transcript([HI, HELLO, long], "now", lambda _file: "")
    assert "(2 earlier messages are left out here.)" in prompt
    assert "Hello" not in prompt
    assert len(prompt) < MAX_TRANSCRIPT_CHARACTERS + 200
