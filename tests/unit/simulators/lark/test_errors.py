from internal.simulators.lark.errors import (
    CARD_REFUSED,
    RESET_HEADER,
    CardError,
    bad_parameter,
    rate_limited,
)


def test_a_card_error_is_wrapped_in_messages_and_plain_in_cardkit() -> None:
    error = CardError(11310, "too many tables")
    assert error.in_message().code == CARD_REFUSED
    assert "ErrCode: 11310" in error.in_message().msg
    assert error.in_cardkit().code == 11310


def test_the_reset_header_is_at_least_one_whole_second() -> None:
    assert rate_limited(0.2).headers == {RESET_HEADER: "1"}
    assert rate_limited(2.5).headers == {RESET_HEADER: "3"}
    assert rate_limited(1).status == 429


def test_a_parameter_error_ends_with_its_reason() -> None:
    assert bad_parameter("reason").msg.endswith("ext=reason")
