"""Draw a bar or line chart of a CSV or JSON file as SVG, with the standard library only.

The SVG has no scripts and no references; all text from the data is escaped.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import re
import sys
import unicodedata
from html import escape
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

MAX_BYTES = 20_000_000
MAX_SERIES = 8
MAX_POINTS = {"bar": 60, "line": 5_000}
MAX_LABEL_WIDTH = 24
MAX_LABELS = 30  # of a line; each bar has one
MAX_NUMBER_CHARS = 60
MAX_TITLE_WIDTH = 100

WIDTH, HEIGHT = 800, 500
LEFT, RIGHT, TOP = 80, 20, 60
FONT = 'font-family="sans-serif" font-size="12"'
COLOURS = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7"),
    *("#d55e00", "#56b4e9", "#7a7a00", "#555555"),
)

_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
_FORBIDDEN = re.compile("[^\\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # not allowed in XML


class Series(NamedTuple):
    """The values of a column; None where there is no number."""

    name: str
    values: list[float | None]


def main() -> None:
    """Read the arguments, draw the chart and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("input", type=Path, help="a CSV or JSON file")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the SVG file to write")
    parser.add_argument("--type", choices=sorted(MAX_POINTS), default="bar")
    parser.add_argument("--label", help="the column of labels; without it, the first one")
    parser.add_argument(
        "--value", action="append", help="a column of numbers; may be repeated; else the second one"
    )
    parser.add_argument("--title", default="", help="the title, with the unit")
    parser.add_argument("--sort", action="store_true", help="order by the first value, descending")
    parser.add_argument("--top", type=int, help="draw only the first N rows")
    args = parser.parse_args()
    if args.top is not None and args.top < 1:
        fail("--top must be at least 1.")

    columns, rows = read_table(args.input)
    label = find_column(columns, args.label, 0)
    names = args.value or [None]
    if len(names) > MAX_SERIES:
        fail(f"At most {MAX_SERIES} series can be told apart in a chart.")
    wanted = [find_column(columns, name, 1) for name in names]
    numbers = [[to_number(row[at]) for at in wanted] for row in rows]
    order = list(range(len(rows)))
    if args.sort:
        order.sort(key=lambda at: sort_value(numbers[at][0]), reverse=True)
    order = order[: args.top]
    if len(order) > MAX_POINTS[args.type]:
        fail(
            f"{args.input} has {len(order):,} rows; a {args.type} chart shows at most"
            f" {MAX_POINTS[args.type]:,}. Aggregate them, or use --sort and --top."
        )
    series = [
        Series(columns[column], [numbers[row][at] for row in order])
        for at, column in enumerate(wanted)
    ]
    report_gaps(series)
    labels = [as_text(rows[row][label]) for row in order]
    args.output.write_text(draw(args.type, args.title, labels, series), encoding="utf-8")
    print(f"{args.output}: {len(labels)} labels, {len(series)} series")


def sort_value(number: float | None) -> float:
    """Return what a row is ordered by; those without a number are last."""
    return -math.inf if number is None else number


def read_table(path: Path) -> tuple[list[str], list[list[Any]]]:
    """Return the names of the columns, and the rows, all as long as the names."""
    try:
        if path.stat().st_size > MAX_BYTES:
            fail(f"{path} has more than {MAX_BYTES:,} bytes; aggregate it first.")
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        fail(f"{path} cannot be read: {error.strerror}.")
    except UnicodeDecodeError:
        fail(f"{path} is not text in UTF-8; convert it first.")
    if not text.strip():
        fail(f"{path} is empty.")
    kind = path.suffix.lower()
    is_json = kind == ".json" or (kind not in {".csv", ".tsv"} and text.lstrip()[0] in "[{")
    columns, rows = read_json(text, path) if is_json else read_csv(text, path)
    if not rows:
        fail(f"{path} has no rows.")
    if len(columns) < 2:
        fail(f"{path} has only one column; a chart needs labels and values.")
    return columns, rows


def read_csv(text: str, path: Path) -> tuple[list[str], list[list[Any]]]:
    """Return the columns and rows of CSV text."""
    first = text.lstrip().split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text.replace("\0", ""), newline=""), delimiter=delimiter)
    try:
        lines = [line for line in reader if any(cell.strip() for cell in line)]
    except csv.Error as error:
        fail(f"{path}, line {reader.line_num}: {error}.")
    columns = [name.strip() for name in lines[0]] if lines else []
    width = len(columns)
    return columns, [(line + [""] * width)[:width] for line in lines[1:]]


def read_json(text: str, path: Path) -> tuple[list[str], list[list[Any]]]:
    """Return the columns and rows of a list of objects, or of one object with numbers."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        fail(f"{path} is not JSON: {error}.")
    if isinstance(data, dict):
        return ["label", "value"], [[name, value] for name, value in data.items()]
    if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
        fail(f"{path} is neither a list of objects nor an object.")
    columns = list(dict.fromkeys(name for row in data for name in row))
    if len(columns) * len(data) > MAX_BYTES:
        fail(f"{path} has too many different keys.")
    return columns, [[row.get(name) for name in columns] for row in data]


def find_column(columns: list[str], name: str | None, default: int) -> int:
    """Return the position of a column."""
    if name is None:
        return default
    if name not in columns:
        fail(f"There is no column {name!r}; there are: {', '.join(columns[:50])}.")
    return columns.index(name)


def to_number(cell: Any) -> float | None:
    """Return a finite number, None for anything else."""
    if isinstance(cell, bool) or cell is None:
        return None
    if isinstance(cell, int | float):
        try:
            number = float(cell)
        except OverflowError:
            return None
    else:
        text = cell.strip().removesuffix("%").strip() if isinstance(cell, str) else ""
        if len(text) > MAX_NUMBER_CHARS:
            return None
        if _THOUSANDS.fullmatch(text):
            text = text.replace(",", "")
        if not _NUMBER.fullmatch(text):
            return None
        number = float(text)
    if not abs(number) < 1e100:  # also infinity and NaN
        return None
    return 0.0 if abs(number) < 1e-100 else number


def as_text(cell: Any) -> str:
    """Return a label."""
    return cell.strip() if isinstance(cell, str) else "" if cell is None else json.dumps(cell)


def report_gaps(series: list[Series]) -> None:
    """Say how many cells are not drawn; end if a series has no number."""
    for name, values in series:
        gaps = values.count(None)
        if gaps == len(values):
            fail(f"The column {name!r} has no numbers.")
        if gaps:
            print(
                f"{name}: {gaps} of {len(values)} cells are not numbers and are left out.",
                file=sys.stderr,
            )


def draw(kind: str, title: str, labels: list[str], series: list[Series]) -> str:
    """Return the chart as SVG text."""
    numbers = [value for each in series for value in each.values if value is not None]
    ticks = axis_ticks(min(numbers), max(numbers), from_zero=kind == "bar")
    every = math.ceil(len(labels) / MAX_LABELS) if kind == "line" else 1
    angle, height = label_layout(labels[::every])
    legend = 24 if len(series) > 1 else 0
    scale = Scale(ticks[0], ticks[-1], HEIGHT - legend - height, len(labels))
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    name = clean(title or ", ".join(each.name for each in series), MAX_TITLE_WIDTH)
    shapes = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" {FONT}>',
        f"<title>{name}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="30" font-size="18">{clean(title, MAX_TITLE_WIDTH)}</text>',
        *draw_axis(ticks, scale),
        *draw_labels(labels, scale, every, angle),
    ]
    if kind == "bar":
        shapes += draw_bars(series, labels, scale)
    else:
        for each, colour in zip(series, COLOURS, strict=False):
            shapes += draw_line(each, labels, scale, colour)
    if legend:
        shapes += draw_legend(series)
    return "\n".join([*shapes, "</svg>\n"])


class Scale(NamedTuple):
    """Where values and labels are in the picture."""

    low: float
    high: float
    bottom: int
    labels: int

    def y(self, value: float) -> float:
        """Return the height of a value."""
        share = (value - self.low) / (self.high - self.low)
        return self.bottom - share * (self.bottom - TOP)

    @property
    def step(self) -> float:
        """The width of a label."""
        return (WIDTH - LEFT - RIGHT) / self.labels

    def x(self, at: int) -> float:
        """Return the centre of a label."""
        return LEFT + (at + 0.5) * self.step


def axis_ticks(low: float, high: float, *, from_zero: bool) -> list[float]:
    """Return about six round numbers from at most the lowest to at least the highest value."""
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low <= 1e-9 * max(abs(low), abs(high)):  # one value, also 0
        margin = abs(high) / 2 or 1.0
        low, high = (low, high + margin) if low >= 0 else (low - margin, high)
    power = 10.0 ** math.floor(math.log10((high - low) / 5))
    steps = [power * each for each in (1, 2, 2.5, 5, 10)]
    step = next((each for each in steps if each * 5 >= high - low), steps[-1])
    first, last = math.floor(low / step), math.ceil(high / step)
    return [at * step for at in range(first, last + 1)]


def label_layout(labels: list[str]) -> tuple[int, int]:
    """Return the angle of the labels, 0 if all fit side by side, and the height that they need."""
    width = 7 * min(MAX_LABEL_WIDTH, max(map(text_width, labels)))
    if width * len(labels) <= WIDTH - LEFT - RIGHT:
        return 0, 50
    return (60 if len(labels) <= 45 else 90), 35 + width


def draw_axis(ticks: list[float], scale: Scale) -> list[str]:
    """Return the horizontal lines with their numbers."""
    decimals = min(max(0, 1 - math.floor(math.log10(ticks[1] - ticks[0]))), 12)
    shapes = []
    for tick in ticks:
        y, number = scale.y(tick), format_number(tick, decimals)
        colour = "#333333" if tick == 0 else "#dddddd"
        shapes += [
            f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="{colour}"/>',
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{number}</text>',
        ]
    return shapes


def draw_labels(labels: list[str], scale: Scale, every: int, angle: int) -> list[str]:
    """Return every n-th label below the axis."""
    shapes = []
    for at in range(0, len(labels), every):
        x, y, text = scale.x(at), scale.bottom + 16, clean(labels[at], MAX_LABEL_WIDTH)
        place = f'text-anchor="end" transform="rotate(-{angle} {x:.1f} {y})"'
        if not angle:
            place = 'text-anchor="middle"'
        shapes.append(f'<text x="{x:.1f}" y="{y}" {place}>{text}</text>')
    return shapes


def draw_bars(series: list[Series], labels: list[str], scale: Scale) -> list[str]:
    """Return a bar for each number; those of one label are side by side."""
    width = scale.step * 0.8 / len(series)
    shapes = []
    for at, (name, values) in enumerate(series):
        for row, value in enumerate(values):
            if value is not None:
                x = scale.x(row) + (at - len(series) / 2) * width
                top, end = sorted((scale.y(value), scale.y(0)))
                shapes.append(
                    f'<rect x="{x:.1f}" y="{top:.1f}" width="{width:.1f}"'
                    f' height="{end - top:.1f}" fill="{COLOURS[at]}">'
                    f"{tooltip(name, labels[row], value)}</rect>"
                )
    return shapes


def draw_line(series: Series, labels: list[str], scale: Scale, colour: str) -> list[str]:
    """Return the parts of a line between gaps, and points where there are few."""
    shapes: list[str] = []
    part: list[str] = []
    for at, value in enumerate([*series.values, None]):
        if value is not None:
            part.append(f"{scale.x(at):.1f},{scale.y(value):.1f}")
        elif part:
            points = " ".join(part if len(part) > 1 else part * 2)
            shapes.append(
                f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"'
                ' stroke-linecap="round" stroke-linejoin="round"/>'
            )
            part = []
    if len(labels) <= 100:
        shapes += [
            f'<circle cx="{scale.x(at):.1f}" cy="{scale.y(value):.1f}" r="3" fill="{colour}">'
            f"{tooltip(series.name, labels[at], value)}</circle>"
            for at, value in enumerate(series.values)
            if value is not None
        ]
    return shapes


def draw_legend(series: list[Series]) -> list[str]:
    """Return the names of the series with their colours."""
    width = (WIDTH - LEFT - RIGHT) / len(series)
    shapes = []
    for at, each in enumerate(series):
        x = LEFT + at * width
        name = clean(each.name, max(4, int(width / 9)))
        shapes += [
            f'<rect x="{x:.1f}" y="{HEIGHT - 22}" width="12" height="12" fill="{COLOURS[at]}"/>',
            f'<text x="{x + 18:.1f}" y="{HEIGHT - 12}">{name}</text>',
        ]
    return shapes


def tooltip(name: str, label: str, value: float) -> str:
    """Return what a browser shows for a bar or a point."""
    return f"<title>{clean(label, 200)}, {clean(name, 200)}: {format_number(value)}</title>"


def format_number(value: float, decimals: int = 3) -> str:
    """Return a number as people write it, with at most so many decimals."""
    if value and not 1e-3 <= abs(value) < 1e12:
        return f"{value:.6g}"
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def text_width(text: str) -> int:
    """Return the width of a text in columns; wide characters have two."""
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)


def clean(text: str, max_width: int) -> str:
    """Return text for SVG: escaped, without forbidden characters, and not wider than a maximum."""
    text = _FORBIDDEN.sub(" ", text[: max_width + 1])
    if text_width(text) > max_width:
        while text_width(text) > max_width - 1:
            text = text[:-1]
        text += "…"
    return escape(text)


def fail(sentence: str) -> NoReturn:
    """End with a message and exit code 1."""
    print(_FORBIDDEN.sub(" ", sentence), file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    main()
