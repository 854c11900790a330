"""Results of the last run of each row, in `results.json` beside this module."""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results.json"
Row = dict[str, Any]


def read(path: Path = RESULTS) -> dict[str, dict[str, Row]]:
    """Return the rows of `clients` and `servers` by name."""
    if not path.exists():
        return {"clients": {}, "servers": {}}
    rows: dict[str, dict[str, Row]] = json.loads(path.read_text(encoding="utf-8"))
    return rows


def write(rows: dict[str, dict[str, Row]], path: Path = RESULTS) -> None:
    """Store all rows, sorted, so that a run changes only the lines of its own programs."""
    text = json.dumps(rows, ensure_ascii=False, indent=1, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")
