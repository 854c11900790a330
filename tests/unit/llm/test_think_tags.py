"""Reasoning in the content of a reply, split at every place."""

import pytest

from internal.llm.think_tags import ThinkTags, split_thinking

CASES = [
    ("<think>\nhm\n</think>\n\nYes.", "hm", "Yes."),
    ("\n <think>a</think>\n<think>b</think>\nYes.", "ab", "Yes."),
    ("<think>\n\n</think>\n\nYes.", "", "Yes."),
    ("<think>never closed", "never closed", ""),
    ("<thought>a < b</thought>Yes.", "a < b", "Yes."),
    ("[THINK]a[1][/THINK]Yes.", "a[1]", "Yes."),
    ("<seed:think>a</seed:think>Yes.", "a", "Yes."),
    ("hm, let me see\n</think>\n\nYes.", "hm, let me see", "Yes."),
    ("hm.</think>\nYes.", "hm.", "Yes."),
    ("hm\n</think>", "hm", ""),
    ("\n</think>\n\nYes.", "", "Yes."),
    ("hm\n</think>\n</think>\nYes.", "hm", "Yes."),
    ("Write `<think>` first.", "", "Write `<think>` first."),
    ("Close it with </think> at the end.", "", "Close it with </think> at the end."),
    ("So: `\n</think>\n", "So: `", ""),  # a code span does not go over lines
    ("```\n</think>\n```\n</think>\nno", "", "```\n</think>\n```\n</think>\nno"),
    ("Yes.\n<think>\nlate\n</think>\n", "", "Yes.\n<think>\nlate\n</think>\n"),
    ("<think>a</think>Yes.\n</think>\nno", "a", "Yes.\n</think>\nno"),
    ("> </think>\nquoted", "", "> </think>\nquoted"),
    ("  ", "", "  "),
    ("", "", ""),
    ("a < b [c] <thin", "", "a < b [c] <thin"),
    ("<th", "", "<th"),
]


def shown(tags: ThinkTags, pieces: list[str]) -> tuple[str, str]:
    """Return the final thoughts and text of a reader of the deltas."""
    texts = {True: "", False: ""}
    for segment in [each for piece in pieces for each in tags.feed(piece)] + tags.end():
        if segment.replaces:
            texts = {True: "", False: ""}
        texts[segment.reasoning] += segment.text
    return texts[True].strip(), texts[False]


@pytest.mark.parametrize(("text", "thought", "answer"), CASES)
def test_a_leading_block_is_reasoning(text: str, thought: str, answer: str) -> None:
    assert split_thinking(text) == (thought, answer)
    for cut in range(len(text) + 1):
        assert shown(ThinkTags(), [text[:cut], text[cut:]]) == (thought, answer), cut
    assert shown(ThinkTags(), list(text)) == (thought, answer)


EXPECTED = [
    ("hm </think> Yes.", "hm", "Yes.", True),
    ("hm `</think>` hm</think>Yes.", "hm `</think>` hm", "Yes.", True),
    ("<think>hm</think>Yes.", "hm", "Yes.", None),
    ("No reasoning today.", "", "No reasoning today.", False),
]


@pytest.mark.parametrize(("text", "thought", "answer", "closed"), EXPECTED)
def test_a_model_that_closes_alone_is_expected_to_reason_first(
    text: str, thought: str, answer: str, closed: bool | None
) -> None:
    for cut in range(len(text) + 1):
        tags = ThinkTags(begins_inside=True)
        first = tags.feed(text[:cut])
        assert (
            not any(segment.text for segment in first if not segment.reasoning)
            or closed is not False
        )
        rest = [*tags.feed(text[cut:]), *tags.end()]
        assert tags.closed_alone is closed
        texts = {True: "", False: ""}
        for segment in (*first, *rest):
            if segment.replaces:
                texts = {True: "", False: ""}
            texts[segment.reasoning] += segment.text
        assert (texts[True].strip(), texts[False]) == (thought, answer)


REACT = [
    ("Thought: I know.\nFinal Answer: 42\nand more", "I know.", "42\nand more"),
    ("Final Answer: 42", "", "42"),
    (
        "Thought: I look.\nAction: look\nAction Input: {}",
        "I look.",
        "Action: look\nAction Input: {}",
    ),
    ("Thought: only this, Final Answer: no", "", "Thought: only this, Final Answer: no"),
    ("My thought.\nFinal Answer: 42", "", "My thought.\nFinal Answer: 42"),
]


@pytest.mark.parametrize(("text", "thought", "answer"), REACT)
def test_the_marks_of_react_are_read(text: str, thought: str, answer: str) -> None:
    for cut in range(len(text) + 1):
        found = shown(ThinkTags(react=True), [text[:cut], text[cut:]])
        assert found == (thought, answer), cut
    assert shown(ThinkTags(react=True), list(text))[0] == thought
    assert split_thinking(text) == ("", text)
