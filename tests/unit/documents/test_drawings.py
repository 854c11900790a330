"""Charts and diagrams."""

import io
from collections.abc import Iterator

from defusedxml.ElementTree import fromstring

from internal.documents.drawings import drawn, picture_text
from internal.documents.package import PackageReader, open_package
from tests.support import documents


def texts(kind: str, content: str) -> Iterator[str]:
    """Yield the texts drawn by an element that refers to a part with this content."""
    package = documents.archive(
        {"a.xml": "", "_rels/a.xml.rels": documents.relationships({"x": (kind, "b.xml")})}
        | {"b.xml": content}
    )
    reader = PackageReader(open_package(io.BytesIO(package), "Word"), "Word")
    name, attribute = ("chart", "id") if kind == "chart" else ("relIds", "dm")
    element = fromstring(f'<{name} xmlns:r="{documents.OFFICE}" r:{attribute}="x"/>')
    yield from drawn(reader, "a.xml", element)
    yield reader.note()


def test_a_chart_has_its_series_beside_each_other() -> None:
    one = documents.chart("Sales", "2025", {"May": 5, "June": 7})
    series = one[one.index("<c:ser>") : one.index("</c:barChart>")]
    second = series.replace("2025", "2026").replace("<c:v>7</c:v>", "<c:v>9</c:v>")
    both = one.replace(series, series + second)
    assert list(texts("chart", both)) == [
        (
            "[Chart: Sales]\n|  | 2025 | 2026 |\n| --- | --- | --- |\n"
            "| May | 5 | 5 |\n| June | 7 | 9 |"
        ),
        "",
    ]


def test_the_points_of_a_scatter_chart_are_pairs() -> None:
    content = documents.chart("", "run", {"1": 5, "2": 7})
    content = content.replace("c:cat>", "c:xVal>").replace("c:val>", "c:yVal>")
    assert "| 1 | 5 |\n| 2 | 7 |" in next(texts("chart", content))


def test_a_label_that_somebody_wrote_is_below_the_numbers() -> None:
    label = "<c:dLbl><c:tx><c:rich><a:p><a:r><a:t>record</a:t></a:r></a:p></c:rich></c:tx></c:dLbl>"
    content = documents.chart("", "2026", {"May": 5}).replace("<c:cat>", f"{label}<c:cat>")
    assert next(texts("chart", content)).endswith("| May | 5 |\nLabel: record")


def test_the_boxes_of_a_diagram_are_a_list() -> None:
    assert next(texts("diagramData", documents.diagram("Plan", "Build"))) == (
        "[Diagram]\n- Plan\n- Build"
    )


def test_what_cannot_be_read_is_named() -> None:
    assert list(texts("chart", "<broken")) == ["[Not understood and left out: b.xml.]\n"]


def test_a_picture_is_shown_by_its_description() -> None:
    assert picture_text(None) == "[Picture]"
    assert picture_text(fromstring("<x descr='our  office' title='t'/>")) == "[Picture: our office]"
    assert picture_text(fromstring("<x title='t'/>")) == "[Picture: t]"
