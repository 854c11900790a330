"""The table of `docs/compatibility.md` and the declarations that it comes from."""

from tests import ROOT
from tests.compatibility.declarations import declarations
from tests.compatibility.results import read
from tests.compatibility.server_declarations import server_declarations
from tests.compatibility.table import PAGES, filled
from tests.compatibility.verdicts import Outcome, judge


def test_the_page_is_written_from_the_results() -> None:
    rows = read()
    for words in PAGES:
        written = (ROOT / "docs" / words.file).read_text(encoding="utf-8")
        assert written == filled(written, rows, words)


def test_each_program_has_a_row_of_its_versions() -> None:
    rows = read()
    assert {name: tuple(row["packages"]) for name, row in rows["clients"].items()} == {
        each.name: each.packages for each in declarations()
    }
    assert {name: row["command"] for name, row in rows["servers"].items()} == {
        each.name: each.command for each in server_declarations()
    }


def test_a_client_without_its_main_use_does_not_work() -> None:
    plain = Outcome("plain", "Answered plain.")
    failing = Outcome("failing", error="it failed")
    assert judge("chat", [plain, failing], 1).verdict == "works"
    repeated = judge("chat", [plain, failing], 3)
    assert (repeated.verdict, repeated.notes) == (
        "works with a note",
        ("failing: one request is 3 runs",),
    )
    lost = [Outcome("plain", error="404"), Outcome("stream", error="404")]
    assert judge("chat", lost, 0)[:2] == ("does not work", ("plain, stream: 404",))
    assert judge("chat", [plain, Outcome("picture", absent="it takes none")], 0).verdict == "works"
