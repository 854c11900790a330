"""The sentences on addresses that do not work."""

from typing import get_args

import pytest

from internal.llm.addresses.sentences import advice_on, why
from internal.llm.addresses.variants import place_of
from internal.llm.server_answers import AddressAnswer, AnswerKind


@pytest.mark.parametrize("detail", ["", "a reason {x}"])
@pytest.mark.parametrize("kind", get_args(AnswerKind))
def test_every_kind_has_a_clause_of_its_own(kind: AnswerKind, detail: str) -> None:
    place, answer = place_of("https://host/v1"), AddressAnswer(kind, 404, detail)
    said = why(place, answer)
    assert said.isprintable()
    assert "()" not in said
    assert "  " not in f"{said}. {advice_on(place, answer)}".strip()


def test_the_scheme_decides_what_is_wrong_with_tls() -> None:
    answer = AddressAnswer("no_tls")
    assert why(place_of("https://host"), answer) == "does not speak TLS"
    assert why(place_of("http://host"), answer) == "is reached over https only"
