"""Equations as a line of text."""

import pytest
from defusedxml.ElementTree import fromstring

from internal.documents.equations import equation_text
from tests.support.documents import MATH


def part(name: str, text: str) -> str:
    return f"<m:{name}><m:r><m:t>{text}</m:t></m:r></m:{name}>"


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (f"<m:f>{part('num', 'a')}{part('den', 'b')}</m:f>", "a/b"),
        (f"<m:f>{part('num', 'a+1')}{part('den', '(b+2)')}</m:f>", "(a+1)/(b+2)"),
        (f"<m:f>{part('num', '(a)(b)')}{part('den', '2')}</m:f>", "((a)(b))/2"),
        (
            (
                f'<m:f><m:fPr><m:type m:val="noBar"/></m:fPr>{part("num", "n")}'
                f"{part('den', 'k')}</m:f>"
            ),
            "n over k",
        ),
        (f"<m:sSup>{part('e', 'x')}{part('sup', '2')}</m:sSup>", "x^2"),
        (f"<m:sSub>{part('e', 'x')}{part('sub', 'i+1')}</m:sSub>", "x_(i+1)"),
        (f"<m:rad><m:deg/>{part('e', 'x')}</m:rad>", "√(x)"),
        (f"<m:rad>{part('deg', '3')}{part('e', 'x')}</m:rad>", "root_3(x)"),
        (
            (
                f'<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr>{part("sub", "i=1")}'
                f"{part('sup', 'n')}{part('e', 'i')}</m:nary>"
            ),
            "∑_(i=1)^n i",
        ),
        (f"<m:d>{part('e', 'a')}{part('e', 'b')}</m:d>", "(a|b)"),
        (
            (
                f"<m:m><m:mr>{part('e', '1')}{part('e', '2')}</m:mr><m:mr>{part('e', '3')}"
                f"{part('e', '4')}</m:mr></m:m>"
            ),
            "[1, 2; 3, 4]",
        ),
        (f"<m:func>{part('fName', 'sin')}{part('e', 'x')}</m:func>", "sin(x)"),
        (f"<m:limLow>{part('e', 'lim')}{part('lim', 'n→∞')}</m:limLow>", "lim_(n→∞)"),
        (f"<m:acc>{part('e', 'x')}</m:acc>", "hat(x)"),
        (f"<m:bar>{part('e', 'x')}</m:bar>", "bar(x)"),
        (f"<m:box>{part('e', 'x')}</m:box>", "x"),
    ],
)
def test_an_equation_is_read_in_its_meaning(content: str, shown: str) -> None:
    assert equation_text(fromstring(f'<m:oMath xmlns:m="{MATH}">{content}</m:oMath>')) == shown
