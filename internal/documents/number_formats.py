"""Numbers of a spreadsheet as their formats show them: dates, times, percentages, units.

Digits are never lost: a value has at least the decimals that its format shows, and more if it
needs them. Dates are in ISO form whatever the format, and thousands are not separated.
"""

import datetime as dt
import re
from functools import cache
from typing import NamedTuple

BUILT_IN = {
    **dict.fromkeys((9,), "0%"),
    **dict.fromkeys((10,), "0.00%"),
    **dict.fromkeys((14, 15, 16, 17, 27, 28, 29, 30, 31, 36), "yyyy-mm-dd"),
    **dict.fromkeys((50, 51, 52, 53, 54, 57, 58), "yyyy-mm-dd"),
    **dict.fromkeys((18, 20, 32, 34, 55), "h:mm"),
    **dict.fromkeys((19, 21, 33, 35, 45, 47, 56), "h:mm:ss"),
    **dict.fromkeys((22,), "yyyy-mm-dd h:mm"),
    **dict.fromkeys((46,), "[h]:mm:ss"),
}
"""The formats that a workbook names by number; of the others the plain number is shown."""

_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|_.|\*.|\[\$(?P<currency>[^\]-]*)(?:-[^\]]*)?\]'
    r"|\[(?P<elapsed>h+|m+|s+)\]|\[[^\]]*\]|(?P<other>.)",
    re.DOTALL | re.IGNORECASE,
)
_DIGITS = frozenset("0#?.,")
_DATE_LETTERS = frozenset("ymdhsge")
_LITERALS = frozenset("$€£¥￥₩₽ +-():/")
_MAX_DECIMALS = 4
_MAX_INTEGER = 10**21
_DIGITS_KEPT = 15  # as in Excel
_MAX_SERIAL = 2_958_466  # the day after 9999-12-31
_LEAP_BUG = 60  # Excel counts a 29 February 1900
_DAY_SECONDS = 86_400


class _Section(NamedTuple):
    """One section of a format: the text around the digits, and the formatting of the number."""

    prefix: str
    digits: str
    suffix: str
    percent: bool
    letters: str
    elapsed: str


_PLAIN = _Section("", "", "", percent=False, letters="", elapsed="")
_SECTION = re.compile(r'(?:"[^"]*"|\\.|[^;"\\])+|(?<=;)(?=;|$)')


def format_number(text: str, code: str, *, since_1904: bool = False) -> str:
    """Return a number, as a file stores it, as its format shows it.

    A format that is not understood shows the plain number.
    """
    try:
        value = float(text)
    except ValueError:
        return text
    section = _section_for(value, code)
    if section.letters or section.elapsed:
        return _date_or_time(value, section, since_1904=since_1904) or _plain(text, value)
    if section == _PLAIN:
        return _plain(text, value)
    if not section.digits:
        has_word = any(each.isalnum() for each in section.prefix)
        return section.prefix if has_word else _plain(text, value)
    return f"{section.prefix}{_digits(text, value, section)}{section.suffix}"


def _section_for(value: float, code: str) -> _Section:
    sections = _sections(code)
    if value < 0 and len(sections) > 1 and sections[1].digits:
        return sections[0]._replace(letters=sections[1].letters)
    if value == 0 and len(sections) > 2:  # noqa: PLR2004 - the third is of zero
        return sections[2]
    return sections[0]


@cache
def _sections(code: str) -> list[_Section]:
    return [_section(each) for each in _SECTION.findall(code)] or [_PLAIN]


def _section(code: str) -> _Section:
    if code.strip().lower() in {"general", "@", ""}:
        return _PLAIN
    scan = _Scan()
    for token in _TOKEN.finditer(code):
        scan.add(token)
    return scan.section()


class _Scan:
    """Reads one part of a format, sign by sign."""

    def __init__(self) -> None:
        self._before = self._digits = self._after = ""
        self._letters = self._elapsed = ""
        self._percent = self._is_odd = False

    def add(self, token: re.Match[str]) -> None:
        """Read a literal or a sign."""
        literal = token["quoted"] or token["escaped"] or token["currency"] or ""
        sign = token["other"] or ""
        self._elapsed += token["elapsed"] or ""
        if sign and sign in _DIGITS:
            self._is_odd = self._is_odd or bool(self._after.strip())  # such as a phone number
            self._digits += sign
        elif sign == "%":
            self._percent = True
        elif sign and sign.lower() in _DATE_LETTERS:
            self._letters += sign.lower()
        elif sign and sign not in _LITERALS:
            self._is_odd = True
        elif self._digits:
            self._after += literal or sign
        else:
            self._before += literal or sign

    def section(self) -> _Section:
        """Return the parsed section; a plain number if it is not understood."""
        date_letters = self._letters.strip("ge")
        is_odd = self._is_odd or "/" in self._before + self._after  # a fraction
        is_odd = is_odd or ("e" in self._letters and bool(self._digits))  # a power of ten
        if is_odd and not date_letters:
            return _PLAIN
        is_date = bool(date_letters) and not (self._digits.strip(".0") or self._percent)
        return _Section(
            self._before.replace("(", "").replace("+", ""),
            self._digits,
            ("%" if self._percent else "") + self._after.replace(")", ""),
            percent=self._percent,
            letters=self._letters if is_date else "",
            elapsed=self._elapsed,
        )


def _plain(text: str, value: float) -> str:
    if text.strip().lstrip("-").isdigit():
        return text.strip()
    if value.is_integer() and abs(value) < _MAX_INTEGER:
        number = int(value)
        return str(round(number, min(_DIGITS_KEPT - len(str(abs(number))), 0)))
    return f"{value:.15g}"


def _digits(text: str, value: float, section: _Section) -> str:
    digits = section.digits
    thousands = len(digits) - len(digits.rstrip(","))
    decimals = len(digits.partition(".")[2].replace(",", ""))
    whole = digits.partition(".")[0].replace(",", "")
    if not section.percent and not thousands:
        if decimals == 0 and value.is_integer() and whole.count("0") > 1:
            return f"{value:0{whole.count('0')}.0f}"  # such as a postal code
        return _plain(text, value)
    shown = value * 100 if section.percent else value / 1000**thousands
    least = len(digits.partition(".")[2].rstrip(",").rstrip("#?"))
    number = f"{shown:.{max(decimals, _MAX_DECIMALS)}f}"
    kept = number.rstrip("0").rstrip(".") if "." in number else number
    have = len(kept.partition(".")[2])
    return f"{shown:.{least}f}" if have < least else kept


def _date_or_time(value: float, section: _Section, *, since_1904: bool) -> str:
    """Return a date, a time or both; "" if the number is not one."""
    if section.elapsed:
        return _duration(value)
    letters = section.letters
    has_time = "h" in letters or "s" in letters
    has_date = "y" in letters or "d" in letters or not has_time
    if not 0 <= value < _MAX_SERIAL:
        return ""
    days, seconds = divmod(round(value * _DAY_SECONDS), _DAY_SECONDS)
    time = f"{seconds // 3600:02}:{seconds // 60 % 60:02}"
    time += f":{seconds % 60:02}" if "s" in letters or seconds % 60 else ""
    if not has_date or (days == 0 and has_time):
        return time
    first = dt.date(1904, 1, 1) if since_1904 else dt.date(1899, 12, 30)
    if not since_1904 and days < _LEAP_BUG:
        days += 1
    try:
        day = (first + dt.timedelta(days)).isoformat()
    except OverflowError:
        return ""
    return f"{day} {time}" if has_time and seconds else day


def _duration(value: float) -> str:
    sign = "-" if value < 0 else ""
    seconds = round(abs(value) * _DAY_SECONDS)
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
