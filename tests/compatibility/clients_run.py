"""One run of a client's program against a gateway."""

import re
import shutil
from pathlib import Path

from tests.compatibility.declarations import Declaration
from tests.compatibility.deliveries import delivered
from tests.compatibility.installation import NotInstalled, installed, run
from tests.compatibility.place import Place, base_environ, own_environ
from tests.compatibility.verdicts import Judged, judge, outcomes, shortened
from tests.support.gateway_process import LARKSPUR

RUN_SECONDS = 420.0


async def run_client(declared: Declaration, where: Place, cache: Path, deliveries: Path) -> Judged:
    """Install and run a client, and judge its output."""
    try:
        folder, command = await installed(declared, cache, own_environ())
    except NotInstalled as error:
        return Judged("not tried", (f"not installed: {shortened(str(error))}",), (), ())
    case = re.sub(r"\W+", "-", declared.name.lower())
    if declared.door == "webhook":
        # A signature counts for five minutes.
        home = deliveries.parent / f"{declared.language}-{declared.program.stem}"
        _keep(await delivered(home), deliveries)
    work = folder / "home" / "work"
    given = {
        **_environ(declared, where, work),
        "LARKSPUR_CASE": case,
        "LARKSPUR_INSTALLED": str(folder),
        "LARKSPUR_DELIVERIES": str(deliveries),
    }
    try:
        _, output = await run(*command, folder=work, environ=given, seconds=RUN_SECONDS)
    except TimeoutError:
        return Judged("does not work", (f"no end in {RUN_SECONDS:.0f} seconds",), (), ())
    _keep(output, folder / f"output-{declared.door}.txt")
    found = outcomes(output)
    if not found:
        return Judged("does not work", (shortened(output[-600:]),), (), ())
    return judge(declared.door, found, where.failures[case])


def _environ(declared: Declaration, where: Place, work: Path) -> dict[str, str]:
    """Return the variables of a program, and make its folder in a new home folder."""
    shutil.rmtree(work.parent, ignore_errors=True)
    work.mkdir(parents=True)
    return {
        **base_environ(work.parent),
        "LARKSPUR_URL": where.url,
        "LARKSPUR_KEY": where.gateway.client.token,
        "LARKSPUR_DOOR": declared.door,
        "LARKSPUR_PROGRAM": str(LARKSPUR),
        "LARKSPUR_GATEWAY_HOME": str(where.home),
        "PYTHONPATH": str(declared.program.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "NO_PROXY": "*",
    }


def _keep(text: str, path: Path) -> None:
    path.write_text(text, encoding="utf-8")
