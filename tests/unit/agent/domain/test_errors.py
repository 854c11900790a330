"""The error types and the values they carry."""

from typing import Any

from internal.agent.domain.errors import (
    CODES,
    ModelError,
    ModelOverloaded,
    ModelRejected,
    Refusal,
    RunStopped,
)
from internal.agent.domain.events.types import (
    ResultFinal,
)


def all_below(kind: type[Any]) -> set[type[Any]]:
    return {each for sub in kind.__subclasses__() for each in {sub, *all_below(sub)}}


def test_every_model_error_has_a_unique_documented_code() -> None:
    kinds = all_below(ModelError)
    codes = {kind.default_code for kind in kinds}
    assert len(codes) == len(kinds)
    codes |= {*CODES.values()}
    assert all(f"{code}," in (ResultFinal.__doc__ or "").replace(".", ",") for code in codes)
    assert ModelRejected("No.", refusal=Refusal("region")).code == CODES["region"]
    assert ModelRejected("No.", refusal=Refusal("field")).code == ModelRejected("No.").code
    assert ModelOverloaded("Busy.", 2.5).retry_after == 2.5
    assert (str(ModelOverloaded("Busy.")), ModelOverloaded("Busy.").retry_after) == ("Busy.", None)


def test_run_stopped_carries_who_stopped_it_and_why() -> None:
    stopped = RunStopped("ada", "web")
    assert (stopped.by, stopped.via, stopped.reason) == ("ada", "web", "stopped")
    assert str(stopped) == "stopped by ada via web"
    assert (
        RunStopped("ada", "web", "enough").reason
        == str(RunStopped("ada", "web", "enough"))
        == "enough"
    )
