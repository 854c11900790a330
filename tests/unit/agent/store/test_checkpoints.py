"""Encoding of Turns as checkpoints."""

import msgspec
import pytest

from internal.agent.domain.delegation.state import SubtaskState
from internal.agent.domain.errors import StoreCorrupt
from internal.agent.domain.ids import TaskId
from internal.agent.domain.messages import (
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    user_message,
)
from internal.agent.domain.react.context_window import ContextWindow
from internal.agent.domain.react.history import History, HistoryRef
from internal.agent.domain.usage import Usage
from internal.agent.store.checkpoints import (
    CheckpointEncoder,
    decode_checkpoint,
    merge_deltas,
    readable_turn,
)
from tests.support.turn_driver import run_calls, run_config, start_turn, stored_checkpoint
from tests.support.weighed_messages import weighed

encode = msgspec.json.Encoder(order="deterministic").encode


def test_a_turn_is_restored_from_its_deltas() -> None:
    turn, encoder = start_turn(run_config()), CheckpointEncoder()
    first = encoder.encode(turn)
    turn.messages.append(Message("assistant", (Text("One heron."),)))
    second = encoder.encode(turn)

    restored = decode_checkpoint(stored_checkpoint(first, second))

    assert encode(restored) == encode(turn)
    assert (first.offset, len(first.messages)) == (0, 2), "the configuration and the task"
    assert (second.offset, len(second.messages)) == (2, 1), "the new message only"


def test_what_only_a_provider_reads_is_restored() -> None:
    turn, encoder = start_turn(run_config()), CheckpointEncoder()
    fields = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
    called = ToolCall("", "read_file", {"path": "a"}, opaque=fields, wire_id="functions.x:0")
    parts = (Thinking("Hm.", "s", opaque={"reasoning_details": [{"data": "ZW5j"}]}), called)
    turn.add_reply(parts, "m", Usage(1, 1), 0.0, origin="openai:m")

    restored = decode_checkpoint(stored_checkpoint(encoder.encode(turn)))

    assert restored.messages[-1] == turn.messages[-1]
    thought, call = restored.messages[-1].parts
    assert (thought, restored.messages[-1].origin) == (parts[0], "openai:m")
    assert isinstance(call, ToolCall)
    assert (call.opaque, call.wire_id) == (fields, "functions.x:0")
    run_calls(restored)
    (result,) = restored.messages[-1].parts
    assert isinstance(result, ToolResult)
    assert (result.wire_id, restored.messages[-1].origin) == ("functions.x:0", "openai:m")


def test_the_history_of_a_turn_is_stored_as_a_reference() -> None:
    earlier = [user_message("How many?"), Message("assistant", (Text("Two."),))]
    history = History(weighed(earlier), (0, 1), HistoryRef(1000, 2, 2, 2))
    turn, encoder = start_turn(run_config()), CheckpointEncoder()
    turn.add_history(history)
    first = encoder.encode(turn)
    turn.messages.append(Message("assistant", (Text("One heron."),)))
    second = encoder.encode(turn)

    restored = decode_checkpoint(stored_checkpoint(first, second))
    assert restored.messages == turn.messages[2:]
    assert restored.run_messages() == turn.run_messages()
    restored.add_history(history)
    assert encode(restored) == encode(turn)
    assert CheckpointEncoder(3).encode(restored).messages == ()
    assert b"How many?" not in b"".join((first.turn, *first.messages, second.turn))


def test_a_history_of_another_size_resets_what_is_left_out() -> None:
    turn = start_turn(run_config())
    turn.add_history(History(weighed([user_message("a")] * 4), (2, 3), HistoryRef(1000, 4, 4, 4)))
    turn.window = ContextWindow(history_from=2, essential=(2, 3))
    restored = decode_checkpoint(stored_checkpoint(CheckpointEncoder().encode(turn)))
    shorter = weighed([user_message("a")] * 3)
    restored.add_history(History(shorter, (1, 2), HistoryRef(1000, 4, 4, 3)))
    assert restored.window == ContextWindow(essential=(1, 2))
    assert (restored.task_index, len(restored.messages)) == (3, 4)


def test_an_encoder_continues_after_the_stored_rows() -> None:
    turn = start_turn(run_config())
    rows = CheckpointEncoder().encode(turn).messages
    delta = CheckpointEncoder(len(rows)).encode(turn)
    assert (delta.offset, delta.messages) == (len(rows), ())


def test_merging_deltas() -> None:
    turn, encoder = start_turn(run_config()), CheckpointEncoder()
    first = encoder.encode(turn)
    turn.messages.append(Message("assistant", (Text("One heron."),)))
    second = encoder.encode(turn)

    merged = merge_deltas([first, second])

    assert merged is not None
    assert merged.offset == 0
    assert encode(decode_checkpoint(stored_checkpoint(merged))) == encode(turn)
    assert merge_deltas([]) is None


def test_what_the_first_version_knew_of_subtasks_is_their_state() -> None:
    delta = CheckpointEncoder().encode(start_turn(run_config()))
    former = b'{"told_tasks":["task-1"],"has_subtasks":true,' + delta.turn[1:]
    restored = decode_checkpoint(stored_checkpoint(delta)._replace(turn=former))
    assert SubtaskState.of(restored.states) == SubtaskState(frozenset({TaskId("task-1")}), True)


@pytest.mark.parametrize("rows", [[], [b"{}"], [b"not JSON"]])
def test_a_checkpoint_that_cannot_be_decoded(rows: list[bytes]) -> None:
    delta = CheckpointEncoder().encode(start_turn(run_config()))
    with pytest.raises(StoreCorrupt, match="cannot be read"):
        decode_checkpoint(stored_checkpoint(delta)._replace(rows=rows))


def test_a_checkpoint_of_a_newer_version_is_refused() -> None:
    stored = stored_checkpoint(CheckpointEncoder().encode(start_turn(run_config())))
    with pytest.raises(StoreCorrupt, match=r"newer Larkspur .*version 7.*reads up to 1\)"):
        decode_checkpoint(stored._replace(version=7))


def test_the_messages_before_an_unreadable_one_are_kept() -> None:
    turn = start_turn(run_config())
    earlier, task = Message("assistant", (Text("Earlier."),)), turn.messages[-1]
    turn.messages.insert(turn.task_index, earlier)
    turn.task_index += 1
    call = Message("assistant", (ToolCall("call-1", "shell", {}),))
    turn.messages.append(call)
    whole = stored_checkpoint(CheckpointEncoder().encode(turn))

    kept = readable_turn(whole._replace(turn=b"{", rows=[*whole.rows, b"{", encode(call)]))
    nothing = readable_turn(whole._replace(turn=b"{", rows=whole.rows[:2]))

    unknown = ToolResult("call-1", "interrupted, outcome unknown", failed=True)
    assert kept is not None
    assert kept.run_messages() == [task, call, Message("user", (unknown,))]
    assert nothing is None
