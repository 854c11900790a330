"""The output of running calls in files that outlast the process."""

from pathlib import Path

import pytest

from internal.agent.domain.ids import RunId
from internal.agent.store.call_outputs import MAX_KEPT_CHARACTERS, NO_OUTPUTS, CallOutputs

RUN = RunId("run-1")


@pytest.fixture
def outputs(tmp_path: Path) -> CallOutputs:
    return CallOutputs(tmp_path / "call-output")


def test_output_is_read_by_another_process_and_removed_with_its_call(
    outputs: CallOutputs, tmp_path: Path
) -> None:
    file = outputs.open(RUN, "call-1")
    assert outputs.read(RUN, "call-1") is None
    file.touch()
    file.write("one\n")
    file.write("zwölf 二\n")
    kept = CallOutputs(tmp_path / "call-output").read(RUN, "call-1")
    assert kept is not None
    assert kept.text == file.text == "one\nzwölf 二\n"
    assert outputs.list_runs() == [RUN]
    outputs.remove(RUN, "call-1")
    assert outputs.read(RUN, "call-1") is None
    assert outputs.list_runs() == []


def test_of_long_output_the_beginning_and_the_end_are_kept(outputs: CallOutputs) -> None:
    file = outputs.open(RUN, "call-1")
    half = MAX_KEPT_CHARACTERS // 2
    for _ in range(10):
        file.write("x" * half)
    file.write("end")
    assert file.text.startswith("x" * half + "\n… ")
    assert file.text.endswith("xend")
    kept = outputs.read(RUN, "call-1")
    assert kept is not None
    assert kept.text.endswith("xend")
    assert len(kept.text) <= 2 * MAX_KEPT_CHARACTERS


def test_a_folder_that_cannot_be_written_does_not_stop_the_call(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    outputs = CallOutputs(tmp_path / "file")
    file = outputs.open(RUN, "call-1")
    file.write("printed")
    assert file.text == "printed"
    assert outputs.read(RUN, "call-1") is None
    assert outputs.list_runs() == []


def test_without_a_folder_nothing_is_kept(outputs: CallOutputs) -> None:
    file = NO_OUTPUTS.open(RUN, "call-1")
    file.write("printed")
    assert file.text == "printed"
    assert NO_OUTPUTS.read(RUN, "call-1") is None
    outputs.open(RUN, "call-1").write("a")
    outputs.remove_run(RUN)
    assert outputs.list_runs() == []
