"""Drawings of Word, Excel and PowerPoint: charts, diagrams, pictures with their descriptions."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from internal.documents.extraction import clean, table_row, table_rule
from internal.documents.number_formats import format_number
from internal.documents.package import PackageReader, local_attribute, local_name

_MAX_POINTS = 5_000
_VISIBLE_BOXES = frozenset({"node", "asst", ""})


def drawn(package: PackageReader, part: str, element: Element) -> Iterator[str]:
    """Yield the charts and diagrams that an element of a part refers to.

    Parts that cannot be read are named.
    """
    match local_name(element):
        case "chart" if target := _target(package, part, element, "id"):
            yield from _chart(package, target)
        case "relIds" if target := _target(package, part, element, "dm"):
            yield from _diagram(package, target)
        case _:
            pass


def picture_text(properties: Element | None) -> str:
    """Return a picture by its description, of `cNvPr` or `docPr`."""
    if properties is None:
        return "[Picture]"
    description = properties.get("descr") or properties.get("title") or ""
    shown = " ".join(clean(description).split())
    return f"[Picture: {shown}]" if shown else "[Picture]"


def paragraph_text(paragraph: Element) -> str:
    """Return the text of a paragraph of DrawingML."""
    return clean("".join(_texts(paragraph))).strip()


def _texts(paragraph: Element) -> Iterator[str]:
    for each in paragraph.iter():
        match local_name(each):
            case "t":
                yield each.text or ""
            case "br":
                yield "\n"
            case "tab":
                yield "\t"
            case _:
                pass


def _target(package: PackageReader, part: str, element: Element, attribute: str) -> str:
    wanted = local_attribute(element, attribute)
    found = package.relationships(part).get(wanted)
    return found.target if found and package.has(found.target) else ""


def _diagram(package: PackageReader, part: str) -> Iterator[str]:
    root = package.optional_tree(part)
    if root is None:
        return
    lines = []
    for point in root.iter():
        if local_name(point) == "pt" and local_attribute(point, "type") in _VISIBLE_BOXES:
            paragraphs = (each for each in point.iter() if local_name(each) == "p")
            if text := " ".join(filter(None, map(paragraph_text, paragraphs))):
                lines.append(f"- {' '.join(text.split())}")
    yield "\n".join(["[Diagram]", *lines])


def _chart(package: PackageReader, part: str) -> Iterator[str]:
    root = package.optional_tree(part)
    if root is None:
        return
    titles = [_rich_text(each) for each in root.iter() if local_name(each) == "title"]
    heading = ": ".join(["[Chart", *titles[:1]]) + "]"
    axes = [f"Axis: {each}" for each in titles[1:] if each]
    series = [each for each in root.iter() if local_name(each) in {"ser", "series"}]
    labels = (_rich_text(each) for each in root.iter() if local_name(each) == "dLbl")
    written = [f"Label: {each}" for each in labels if each]
    yield "\n".join([heading, *axes, *_chart_table(series), *written])


def _rich_text(element: Element) -> str:
    found = [paragraph_text(each) for each in element.iter() if local_name(each) == "p"]
    found = found or [each.text or "" for each in element.iter() if local_name(each) == "v"]
    return " ".join(filter(None, found))


def _chart_table(series: list[Element]) -> Iterator[str]:
    """Yield a table with a row for each category and a column for each series."""
    if not series:
        return
    names, columns, categories = ["" for _ in series], [], dict[int, str]()
    for number, each in enumerate(series):
        name = _points(each, "tx")
        names[number] = name.get(0, "") or f"Series {number + 1}"
        for index, text in (_points(each, "cat") or _points(each, "xVal")).items():
            categories.setdefault(index, text)
        values = _points(each, "val") or _points(each, "yVal")
        sizes = _points(each, "bubbleSize")
        columns.append(
            {i: f"{v} (size {sizes[i]})" if i in sizes else v for i, v in values.items()}
        )
    rows = sorted(set(categories).union(*columns))
    yield table_row(["", *names])
    yield table_rule(len(names) + 1)
    for row in rows[:_MAX_POINTS]:
        yield table_row([categories.get(row, ""), *(column.get(row, "") for column in columns)])
    if len(rows) > _MAX_POINTS:
        yield f"[The chart has {len(rows):,} points: the rest is missing.]"


def _points(series: Element, name: str) -> dict[int, str]:
    """Return the values that a chart stores for its names, categories or numbers."""
    found: dict[int, list[str]] = {}
    for holder in series:
        if local_name(holder) != name:
            continue
        code = ""
        for each in holder.iter():
            match local_name(each):
                case "formatCode":
                    code = each.text or ""
                case "pt":
                    index = local_attribute(each, "idx")
                    value = next((v.text or "" for v in each if local_name(v) == "v"), "")
                    shown = _point(value, local_attribute(each, "formatCode") or code)
                    if index.isdigit():
                        found.setdefault(int(index), []).append(clean(shown))
                case "v" if not found and each.text:  # a name that is written in the chart
                    found[0] = [clean(each.text)]
                case _:
                    pass
    # the levels of categories are stored from the innermost one outwards
    return {index: " / ".join(reversed(values)) for index, values in found.items()}


def _point(value: str, code: str) -> str:
    return format_number(value, code) if code else value
