"""Equations of Office (OMML) as a line of text: fractions with a slash, powers with `^`."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from internal.documents.package import local_attribute, local_name

_PROPERTIES = frozenset({"ctrlPr", "rPr", "oMathParaPr"})
_ACCENTS = {"\u0302": "hat", "\u0303": "tilde", "\u0305": "bar", "\u20d7": "vec", "\u0307": "dot"}
_INTEGRAL = "\u222b"


def equation_text(element: Element) -> str:
    """Return an equation, such as `x = (a + b)/2`."""
    return "".join(_parts(element))


def _parts(element: Element) -> Iterator[str]:
    for child in element:
        name = local_name(child)
        if name in _FORMS:
            yield _FORMS[name](child)
        elif name == "t":
            yield child.text or ""
        elif name == "br":
            yield "\n"
        elif name not in _PROPERTIES and not name.endswith("Pr"):
            yield from _parts(child)


def _operand(element: Element, name: str) -> str:
    """Return a part of an equation, in brackets if it is more than a name or a number."""
    text = _inner(element, name)
    return text if text.isalnum() or len(text) <= 1 or _is_bracketed(text) else f"({text})"


def _inner(element: Element, name: str) -> str:
    return next((equation_text(e).strip() for e in element if local_name(e) == name), "")


def _is_bracketed(text: str) -> bool:
    if not (text.startswith("(") and text.endswith(")")):
        return False
    depth = 0
    for place, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if not depth:
            return place == len(text) - 1
    return False


def _property(element: Element, name: str, default: str) -> str:
    """Return a property of an element, whose properties are in its child `…Pr`."""
    for child in element:
        if local_name(child).endswith("Pr"):
            for each in child:
                if local_name(each) == name:
                    return local_attribute(each, "val")
    return default


def _fraction(element: Element) -> str:
    numerator, denominator = _operand(element, "num"), _operand(element, "den")
    if _property(element, "type", "bar") == "noBar":  # such as a binomial
        return f"{numerator} over {denominator}"
    return f"{numerator}/{denominator}"


def _scripts(element: Element) -> str:
    base, low, high = (_operand(element, name) for name in ("e", "sub", "sup"))
    scripts = (f"_{low}" if low else "") + (f"^{high}" if high else "")
    return f"{scripts}{base}" if local_name(element) == "sPre" else f"{base}{scripts}"


def _radical(element: Element) -> str:
    degree = _operand(element, "deg")
    inner = _inner(element, "e")
    return f"root_{degree}({inner})" if degree else f"\u221a({inner})"


def _sum(element: Element) -> str:
    low, high = _operand(element, "sub"), _operand(element, "sup")
    sign = _property(element, "chr", _INTEGRAL)
    limits = (f"_{low}" if low else "") + (f"^{high}" if high else "")
    return f"{sign}{limits} {_inner(element, 'e')}"


def _delimiters(element: Element) -> str:
    first, last = _property(element, "begChr", "("), _property(element, "endChr", ")")
    between = _property(element, "sepChr", "|")
    inner = (equation_text(e).strip() for e in element if local_name(e) == "e")
    return f"{first}{between.join(inner)}{last}"


def _rows(element: Element) -> str:
    rows = []
    for row in element:
        match local_name(row):
            case "mr":
                rows.append(
                    ", ".join(equation_text(e).strip() for e in row if local_name(e) == "e")
                )
            case "e":
                rows.append(equation_text(row).strip())
            case _:
                pass
    return f"[{'; '.join(rows)}]"


def _function(element: Element) -> str:
    name, inner = _inner(element, "fName"), _inner(element, "e")
    return f"{name}{inner}" if _is_bracketed(inner) else f"{name}({inner})"


def _limit(element: Element) -> str:
    sign = "_" if local_name(element) == "limLow" else "^"
    return f"{_operand(element, 'e')}{sign}{_operand(element, 'lim')}"


def _accent(element: Element) -> str:
    sign = _property(element, "chr", "\u0302")
    return f"{_ACCENTS.get(sign, 'accent')}({_inner(element, 'e')})"


def _bar(element: Element) -> str:
    return f"bar({_inner(element, 'e')})"


_FORMS = {
    "acc": _accent,
    "bar": _bar,
    "d": _delimiters,
    "eqArr": _rows,
    "f": _fraction,
    "func": _function,
    "limLow": _limit,
    "limUpp": _limit,
    "m": _rows,
    "nary": _sum,
    "rad": _radical,
    "sPre": _scripts,
    "sSub": _scripts,
    "sSubSup": _scripts,
    "sSup": _scripts,
}
