"""Theme of the session: its signs, and the colours of states."""

from typing import NamedTuple


class Glyphs(NamedTuple):
    """The signs of the terminal, the same as on the page."""

    you: str = ">"
    agent: str = "●"
    tool: str = "◆"
    ok: str = "✓"
    failed: str = "✕"
    plan: str = "▣"
    question: str = "?"
    permission: str = "!"
    subagent: str = "├"
    artifact: str = "▤"
    note: str = "·"
    stopped: str = "■"
    noted: str = "↳"
    prompt: str = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}"
    rule: str = "─"
    bar: str = "│"
    bullet: str = "•"
    arrow: str = "→"
    todo: str = "○"
    fill: str = "█"


UNICODE = Glyphs()
ASCII = Glyphs(
    you=">",
    agent="*",
    tool="@",
    ok="+",
    failed="x",
    plan="#",
    question="?",
    permission="!",
    subagent="|-",
    artifact="=",
    note="-",
    stopped="#",
    noted="->",
    prompt=">",
    rule="-",
    bar="|",
    bullet="*",
    arrow="->",
    todo="o",
    fill="#",
)

THEMES: dict[str, dict[str, str]] = {
    # the sixteen colours are the person's own: they suit a light background and a dark one
    "plain": {
        "ok": "ansigreen",
        "failed": "ansired",
        "running": "ansicyan",
        "need": "ansiyellow",
        "accent": "ansicyan",
        "link": "underline",
        "code": "ansicyan",
        "code.literal": "ansicyan",
        "faint": "ansibrightblack",
    },
    "dark": {
        "ok": "#7bc275",
        "failed": "#ec7171",
        "running": "#6cb6ff",
        "need": "#e3b341",
        "accent": "#6cb6ff",
        "link": "underline",
        "code": "#b9c7d8",
        "code.literal": "#9ecbff",
        "faint": "#838c97",
    },
    "light": {
        "ok": "#1a7f37",
        "failed": "#cf222e",
        "running": "#0550ae",
        "need": "#9a6700",
        "accent": "#0550ae",
        "link": "underline",
        "code": "#344054",
        "code.literal": "#0a3069",
        "faint": "#6a7380",
    },
}
_ALWAYS = {
    "strong": "bold",
    "em": "italic",
    "strike": "strike",
    "you": "bold",
    "code.keyword": "bold",
    "code.name": "bold",
    "menu.chosen": "reverse",
}


def theme_styles(theme: str) -> dict[str, str]:
    """Return the style of every class that the session uses."""
    colours = THEMES[theme]
    derived = {"marker": colours["faint"], "code.comment": colours["faint"]}
    return {**_ALWAYS, **derived, **colours}
