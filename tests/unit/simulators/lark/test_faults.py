import msgspec
import pytest

from internal.simulators.lark.faults import AnswerFault, Faults


def test_a_fault_is_used_as_often_as_it_says_and_only_for_matching_calls() -> None:
    faults = Faults(answers=[AnswerFault("lost", match="/messages", times=2)])
    assert faults.match_call("GET /open-apis/im/v1/chats") is None
    assert [faults.match_call("POST /im/v1/messages") is None for _ in range(3)] == [
        False,
        False,
        True,
    ]


def test_a_fault_of_one_content_leaves_other_calls_alone() -> None:
    faults = Faults(answers=[AnswerFault("code", "/reply", times=9, code=230028, content="secret")])
    assert faults.match_call("POST /im/v1/messages/om_1/reply", '{"text": "hello"}') is None
    fault = faults.match_call("POST /im/v1/messages/om_1/reply", '{"text": "a secret"}')
    assert fault is not None
    assert fault.times == 8


@pytest.mark.parametrize(
    "switches",
    [
        {"discovery": "x"},
        {"handshake": "x"},
        {"speed": 0},
        {"duplicates": -1},
        {"answers": [{"kind": "x"}]},
        {"unknown": 1},
    ],
)
def test_unknown_switches_and_values_are_rejected(switches: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(switches, Faults)
