"""Points in time: the same texts are read on every Python version."""

import pytest

from internal.normal_forms.instants import parse_instant


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("2026-11-24", "2026-11-24T00:00:00"),
        ("2026-11-24T08:30:00Z", "2026-11-24T08:30:00+00:00"),
        ("2026-11-24 08:30", "2026-11-24T08:30:00"),
        ("20261124T083000,5+0100", "2026-11-24T08:30:00.500000+01:00"),
        ("2026-11-24T23:24:24.24", "2026-11-24T23:24:24.240000"),
        ("2026-W48-2T08", "2026-11-24T08:00:00"),
    ],
)
def test_a_time_of_iso_8601_is_read(text: str, read: str) -> None:
    assert parse_instant(text).isoformat() == read


@pytest.mark.parametrize(
    "text",
    [
        *("", "tomorrow", "2026-13-01", "2026-11-24T25:00"),
        *("2026-11-24T24:00", "2026-11-24 24:00:00Z", "20261124T24", "2026-W48-2T24:00"),
        *("2026-11-24T08:30:00.", "2026-11-24T08:30:00.Z", "2026-11-24T08:30:00,+01:00"),
    ],
)
def test_what_some_versions_read_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"isoformat|must be in"):
        parse_instant(text)
