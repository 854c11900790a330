"""Reviews of definitions with hidden characters."""

import json
from pathlib import Path

from tests.support.owner_reviews import owner_reviews


async def test_hidden_characters_of_definitions_are_escaped(home: Path) -> None:
    entries = {
        "tested": {"command": "a\u202eb", "cwd": "/srv/\u202edata", "ico\u200bn": "x"},
        "bad\u202ename": {"command": "x"},
    }
    (home / "mcp.json").write_text(json.dumps({"mcpServers": entries}), encoding="utf-8")
    reviews = owner_reviews(home).mcp
    tested, bad = await reviews.list_all()
    assert tested.target == "'a\\u202eb'"
    assert tested.warnings[0].endswith("unknown keys are ignored: ico\\u200bn")
    assert bad.name == "bad\\u202ename"
    report = await reviews.review("tested", start=False)
    assert report.folder == "/srv/\\u202edata"
