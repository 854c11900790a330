"""Numbers of lists and headings as Word shows them: 1., 1.1, (a), 一、."""

from collections.abc import Callable
from typing import NamedTuple
from xml.etree.ElementTree import Element

from internal.documents.package import local_attribute, local_name

BULLET = "-"
_LEVELS = 9
_CHINESE_DIGITS = "〇一二三四五六七八九"
_LEGAL_DIGITS = "零壹贰叁肆伍陆柒捌玖"
_STEMS = "甲乙丙丁戊己庚辛壬癸"
_BRANCHES = "子丑寅卯辰巳午未申酉戌亥"
_KATAKANA = (
    "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワヲン"
)
_HANGUL = "가나다라마바사아자차카타파하"
_CYRILLIC = "абвгдежзиклмнопрстуфхцчшщыэюя"
_ROMAN = (
    *((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L")),
    *((40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)
_MAX_ENCLOSED = 20
_TEN_THOUSAND = 10_000


class NumberProperties(NamedTuple):
    """The list and the level of a paragraph; the id is "0" if it has no number."""

    list_id: str
    level: int


class _Level(NamedTuple):
    start: int = 1
    form: str = "decimal"
    text: str = ""
    is_legal: bool = False
    restarts_after: int | None = None


class _List(NamedTuple):
    """A list: the definition it shares its counters with, and the levels that begin anew."""

    definition: str
    starts: dict[int, int]
    levels: dict[int, _Level]


def number_properties(properties: Element | None) -> NumberProperties | None:
    """Return the numbering in the properties of a paragraph or a style, None if there is none.

    The id is "" if only the level is given.
    """
    numbering = None if properties is None else properties.find("{*}numPr")
    if numbering is None:
        return None
    values = {local_name(each): local_attribute(each, "val") for each in numbering}
    level = values.get("ilvl", "")
    number = int(level) if level.isdigit() else 0
    return NumberProperties(values.get("numId", ""), min(number, _LEVELS - 1))


class Numbering:
    """Counts the paragraphs of each list while a document is read in order.

    Args:
        root: the numbering part, None if the document has none.
        style_lists: the id of the list that a numbering style refers to, by the style's id.
    """

    def __init__(self, root: Element | None, style_lists: dict[str, str]) -> None:
        self._definitions: dict[str, Element] = {}
        self._lists: dict[str, _List] = {}
        self._counters: dict[str, dict[int, int]] = {}
        self._begun: set[tuple[str, int]] = set()
        self._style_lists = style_lists
        items = () if root is None else tuple(root)
        for each in items:
            if local_name(each) == "abstractNum":
                self._definitions[local_attribute(each, "abstractNumId")] = each
        self._nums = {
            local_attribute(each, "numId"): each for each in items if local_name(each) == "num"
        }

    def label(self, properties: NumberProperties) -> str | None:
        """Count a paragraph and return its number, BULLET for a bullet, "" if nothing is shown.

        None if the document does not define the list.
        """
        found = self._list(properties.list_id)
        level = properties.level
        if found is None or level not in found.levels:
            return None
        counters = self._counters.setdefault(found.definition, {})
        first_use = (properties.list_id, level) not in self._begun
        self._begun.add((properties.list_id, level))
        if level in found.starts and first_use:
            counters[level] = found.starts[level]
        elif level in counters:
            counters[level] += 1
        else:
            counters[level] = found.levels[level].start
        for deeper in [each for each in counters if each > level]:
            after = found.levels.get(deeper, _Level()).restarts_after
            if after is None or level < after:
                del counters[deeper]
        return self._label(found, level, counters)

    def _label(self, found: _List, level: int, counters: dict[int, int]) -> str:
        this = found.levels[level]
        if this.form == "bullet":
            return BULLET
        text = this.text
        for place in range(_LEVELS):
            if f"%{place + 1}" in text:
                other = found.levels.get(place, _Level())
                form = "decimal" if this.is_legal else other.form
                number = counters.get(place, other.start)
                text = text.replace(f"%{place + 1}", format_count(number, form))
        return text.strip()

    def _list(self, list_id: str) -> _List | None:
        if list_id not in self._lists:
            if list_id not in self._nums:
                return None
            self._lists[list_id] = self._defined(list_id)
        return self._lists[list_id]

    def _defined(self, list_id: str) -> _List:
        num = self._nums[list_id]
        definition = next(
            (local_attribute(e, "val") for e in num if local_name(e) == "abstractNumId"), ""
        )
        linked = self._linked_definition(definition)
        levels = _levels(self._definitions.get(linked))
        starts: dict[int, int] = {}
        for override in num.iterfind("{*}lvlOverride"):
            place = _number(local_attribute(override, "ilvl"), 0)
            levels |= _levels(override)
            for each in override.iterfind("{*}startOverride"):
                starts[place] = _number(local_attribute(each, "val"), 1)
        return _List(linked, starts, levels)

    def _linked_definition(self, definition: str) -> str:
        """Follow the link from a definition to the one of a numbering style, once."""
        found = self._definitions.get(definition)
        for link in () if found is None else found.iterfind("{*}numStyleLink"):
            num = self._nums.get(self._style_lists.get(local_attribute(link, "val"), ""))
            for each in () if num is None else num.iterfind("{*}abstractNumId"):
                return local_attribute(each, "val")
        return definition


def _levels(parent: Element | None) -> dict[int, _Level]:
    levels: dict[int, _Level] = {}
    for each in () if parent is None else parent.iterfind("{*}lvl"):
        values = {local_name(e): local_attribute(e, "val") for e in each.iter()}
        restart = values.get("lvlRestart", "")
        levels[_number(local_attribute(each, "ilvl"), 0)] = _Level(
            _number(values.get("start", ""), 1),
            values.get("numFmt", "decimal"),
            values.get("lvlText", ""),
            values.get("isLgl", "0") not in {"0", "false"} if "isLgl" in values else False,
            int(restart) if restart.isdigit() else None,
        )
    return levels


def _number(text: str, default: int) -> int:
    return int(text) if text.isdigit() else default


def format_count(number: int, form: str) -> str:
    """Return a number in a form of Word, such as `upperRoman`; decimal if the form is unknown."""
    return _FORMS.get(form, str)(number)


def _letters(number: int) -> str:
    if number < 1:
        return str(number)
    repeated, place = divmod(number - 1, 26)
    return chr(ord("a") + place) * (repeated + 1)


def _roman(number: int) -> str:
    text = ""
    for value, sign in _ROMAN:
        count, number = divmod(number, value)
        text += sign * count
    return text


def _ordinal(number: int) -> str:
    last, last_two = number % 10, number % 100
    ending = "th" if last_two in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(last, "th")
    return f"{number}{ending}"


def _chinese(number: int) -> str:
    """Return a number as it is said: 十二, 一百零五."""
    return _said(number, _CHINESE_DIGITS, "十百千").replace(_CHINESE_DIGITS[0], _LEGAL_DIGITS[0])


def _legal(number: int) -> str:
    return _said(number, _LEGAL_DIGITS, "拾佰仟")


def _said(number: int, digits: str, units: str) -> str:
    if not 0 < number < _TEN_THOUSAND:
        return digits[0] if number == 0 else str(number)
    text, gap = "", False
    for power in (3, 2, 1, 0):
        digit = number // 10**power % 10
        if not digit:
            gap = bool(text)
            continue
        text += (digits[0] if gap else "") + digits[digit] + (units[power - 1] if power else "")
        gap = False
    is_ten = text.startswith(digits[1] + units[0]) and digits == _CHINESE_DIGITS
    return text.removeprefix(digits[1]) if is_ten else text


def _in_digits(digits: str) -> Callable[[int], str]:
    return lambda number: "".join(digits[int(each)] for each in str(max(number, 0)))


def _from_list(signs: str) -> Callable[[int], str]:
    def sign(number: int) -> str:
        return signs[(number - 1) % len(signs)] if number > 0 else str(number)

    return sign


def _enclosed(first: str) -> Callable[[int], str]:
    def sign(number: int) -> str:
        return chr(ord(first) + number - 1) if 0 < number <= _MAX_ENCLOSED else str(number)

    return sign


_FORMS: dict[str, Callable[[int], str]] = {
    "aiueo": _from_list(_KATAKANA),
    "aiueoFullWidth": _from_list(_KATAKANA),
    "chineseCounting": _chinese,
    "chineseCountingThousand": _chinese,
    "chineseLegalSimplified": _legal,
    "decimalEnclosedCircle": _enclosed("①"),
    "decimalEnclosedCircleChinese": _enclosed("①"),
    "decimalEnclosedFullstop": _enclosed("⒈"),
    "decimalEnclosedParen": _enclosed("⑴"),
    "decimalFullWidth": _in_digits("\uff10\uff11\uff12\uff13\uff14\uff15\uff16\uff17\uff18\uff19"),
    "decimalZero": lambda number: f"{number:02}",
    "ganada": _from_list(_HANGUL),
    "ideographDigital": _in_digits(_CHINESE_DIGITS),
    "ideographTraditional": _from_list(_STEMS),
    "ideographZodiac": _from_list(_BRANCHES),
    "japaneseCounting": _chinese,
    "lowerLetter": _letters,
    "lowerRoman": lambda number: _roman(number).lower(),
    "none": lambda _: "",
    "numberInDash": lambda number: f"- {number} -",
    "ordinal": _ordinal,
    "russianLower": _from_list(_CYRILLIC),
    "russianUpper": _from_list(_CYRILLIC.upper()),
    "taiwaneseCountingThousand": _chinese,
    "upperLetter": lambda number: _letters(number).upper(),
    "upperRoman": _roman,
}
