"""Replies are distinguished from progress and questions."""

import pytest

from internal.channels.lark.replies import is_auxiliary


@pytest.mark.parametrize(
    ("kind", "content", "progress"),
    [
        ("interactive", '{"header": {"title": {}}, "body": {}}', True),
        ("interactive", '{"title": "Working", "elements": []}', True),
        ("interactive", '{"body": {}}', False),
        ("interactive", '{"body": {"elements": [{"element_id": "question_0a1b"}]}}', True),
        ("interactive", '{"body": {"elements": [{"element_id": 7}]}}', False),
        ("interactive", '{"body": {"elements": ["x"]}}', False),
        ("text", '{"text": "⏳\u200b Working"}', True),
        ("text", '{"text": "Working"}', False),
        ("text", "no json", False),
        ("post", "[]", False),
    ],
)
def test_progress_and_questions_are_auxiliary(kind: str, content: str, progress: bool) -> None:
    assert is_auxiliary(kind, content) is progress
