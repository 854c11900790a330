"""Conversion of TeX formulas to plain characters, since Lark shows the TeX source."""

import re
import unicodedata

_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lamda mu nu xi pi rho sigma tau"
    " upsilon phi chi psi omega Gamma Delta Theta Lamda Xi Pi Sigma Phi Psi Omega"
)
"""Names as in Unicode; TeX has another spelling of `lamda`."""
_SIGNS = (
    "times \u00d7 div ÷ cdot · pm ± mp ∓ ast \u2217 circ ∘ le ≤ leq ≤ ge ≥ geq ≥ ne ≠ neq ≠"
    " approx ≈ equiv ≡ sim \u223c ll ≪ gg ≫ propto ∝ infty ∞ partial ∂ nabla ∇ sum ∑ prod ∏ int ∫"
    " in ∈ notin ∉ subset ⊂ subseteq ⊆ cup \u222a cap ∩ emptyset ∅ forall ∀ exists ∃ neg ¬ land ∧"
    " lor \u2228 to → rightarrow → leftarrow ← Rightarrow ⇒ Leftrightarrow ⇔ ldots … cdots ⋯ dots …"
    " angle ∠ perp ⊥ parallel ∥ degree ° prime \u2032 % % $ $ # #"
)
_FUNCTIONS = "sin cos tan log ln exp lim max min det gcd arg"
_BLANKS = dict.fromkeys((",", ";", ":", " ", "quad", "qquad"), " ")
_NOT_SHOWN = dict.fromkeys(("left", "right", "displaystyle", "limits", "big", "Big", "!"), "")


def _greek(name: str) -> str:
    size = "SMALL" if name.islower() else "CAPITAL"
    return unicodedata.lookup(f"GREEK {size} LETTER {name.upper()}")


_PAIRS = _SIGNS.split()
_SYMBOLS = {
    **{name.replace("amd", "ambd"): _greek(name) for name in _GREEK.split()},
    **dict(zip(_PAIRS[::2], _PAIRS[1::2], strict=True)),
    **{name: name for name in _FUNCTIONS.split()},
    **_BLANKS,
    **_NOT_SHOWN,
}
_SUPERSCRIPTS = str.maketrans("0123456789+-=()niT\u2032", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱᵀ\u2032")
_SUBSCRIPTS = str.maketrans("0123456789+-=()aeoxijkmnpt", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₒₓᵢⱼₖₘₙₚₜ")
_GROUP = r"\{((?:[^{}\\]|\\.)*)\}"
_WORDS = re.compile(rf"\\(?:text|mathrm|mathbf|mathit|mathbb|mathcal|operatorname)\s*{_GROUP}")
_FRACTION = re.compile(rf"\\[dt]?frac\s*{_GROUP}\s*{_GROUP}")
_ROOT = re.compile(rf"\\sqrt\s*{_GROUP}")
_SCRIPT = re.compile(rf"\s*([\^_])\s*(?:{_GROUP}|(\w|\\[A-Za-z]+))", re.ASCII)
_COMMAND = re.compile(r"\\([A-Za-z]+|[^A-Za-z])")
_RELATION = re.compile(r" *([=≤≥≠≈≡<>→⇒⇔]) *")
_SIMPLE = re.compile(r"[^\W_]+(?:\.\d+)?")
_MAX_ROUNDS = 8


def formula_text(tex: str) -> str | None:
    """Return a formula in plain characters, or None if they do not suffice for it."""
    text = " ".join(tex.split())
    # from the inside to the outside
    for _ in range(_MAX_ROUNDS):
        inner = _WORDS.sub(r"\1", text)
        inner = _FRACTION.sub(lambda found: f"{_operand(found[1])}/{_operand(found[2])}", inner)
        inner = _ROOT.sub(lambda found: f"√{_operand(found[1])}", inner)
        inner = _SCRIPT.sub(_script, inner)
        if inner == text:
            break
        text = inner
    text = _COMMAND.sub(lambda found: _SYMBOLS.get(found[1], found[0]), text)
    if any(sign in text for sign in "\\^_{}&"):
        return None
    return " ".join(_RELATION.sub(r" \1 ", text).split())


def _operand(text: str) -> str:
    text = text.strip()
    return text if _SIMPLE.fullmatch(text) or text.startswith("\\") else f"({text})"


def _script(found: re.Match[str]) -> str:
    content = (found[2] if found[2] is not None else found[3]).strip()
    content = _COMMAND.sub(lambda command: _SYMBOLS.get(command[1], command[0]), content)
    table = _SUPERSCRIPTS if found[1] == "^" else _SUBSCRIPTS
    if content == "∘" and found[1] == "^":
        return "°"
    if content and all(ord(char) in table for char in content):
        return content.translate(table)
    return found[0]
