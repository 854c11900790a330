"""Arguments and environment of a container engine's program. `make chaos` runs the real podman."""

from pathlib import Path

from msgspec import structs

from internal.sandbox.container import ContainerSandbox
from tests.support.bubblewrap_places import Place


async def test_values_of_variables_are_no_arguments(tmp_path: Path) -> None:
    place, engine = Place(tmp_path), tmp_path / "engine"
    engine.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\" --- && env\n")
    engine.chmod(0o755)
    given = {"KEY": "canary-1", "GOOGLE_KEY": "canary-2", "PATH": "/own", "LD_PRELOAD": "/evil.so"}
    command = structs.replace(place.command("true"), environment=given)
    await ContainerSandbox(str(engine), "image", place.homes).run(command, place.take)
    arguments, _, environment = place.output.decode().partition("---\n")
    assert "canary" not in arguments
    assert {"KEY", "GOOGLE_KEY", "PATH=/own", "LD_PRELOAD=/evil.so"} <= {*arguments.splitlines()}
    variables = {*environment.splitlines()}
    assert {"KEY=canary-1", "GOOGLE_KEY=canary-2"} <= variables
    assert "PATH=/own" not in variables
    assert not any(each.startswith("LD_PRELOAD=") for each in variables)
