"""Formulas in plain characters, as long as these say the same."""

import pytest

from internal.channels.lark.formula_text import formula_text


@pytest.mark.parametrize(
    ("tex", "shown"),
    [
        ("E=mc^2", "E = mc²"),
        (r"\frac{a+b}{2}", "(a+b)/2"),
        (r"x_1 + x_{10} \le 10", "x₁ + x₁₀ ≤ 10"),
        (r"\sqrt{x^2+y^2}", "√(x²+y²)"),
        (r"\int_0^1 x\,dx", "∫₀¹ x dx"),
        (r"\lambda \times \Omega", "λ \u00d7 Ω"),
        (r"O(n \log n)", "O(n log n)"),
        (r"90^\circ, 50\%", "90°, 50%"),
        (r"\text{速度} = \frac{\text{路程}}{\text{时间}}", "速度 = 路程/时间"),
        (r"\left(1+\frac{1}{n}\right)^n", "(1+1/n)ⁿ"),
        (r"x^{y}", None),
        (r"a_b", None),
        (r"\begin{matrix}a & b\end{matrix}", None),
        (r"\unknown{x}", None),
        (r"\frac{a}", None),
    ],
)
def test_a_formula_is_plain_if_plain_characters_suffice(tex: str, shown: str | None) -> None:
    assert formula_text(tex) == shown
