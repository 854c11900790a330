"""Code of `run_code` uses the packages of `sandbox.packages`, and its files reach the person."""

from pathlib import Path

import pytest

from internal.agent.domain.errors import SandboxUnavailable
from tests.support.agent_app import open_agent
from tests.support.anthropic_server import Call, Reply, seen_in
from tests.support.bubblewrap_places import ADDRESS, package_index

CODE = "import os, canary\nopen(os.environ['LARKSPUR_OUTPUT_DIR'] + '/song.txt', 'w').write('la')\n"


@pytest.mark.needs("namespaces")
@pytest.mark.slow
async def test_code_uses_packages_and_its_files_are_artifacts(home: Path, tmp_path: Path) -> None:
    requirements = tmp_path / "requirements.txt"
    script = [
        Reply(calls=[Call("run_code", {"language": "python", "code": CODE})]),
        Reply(text="done"),
    ]
    with package_index(tmp_path, ADDRESS) as port:
        requirements.write_text(
            f"--index-url http://{ADDRESS}:{port}/ --trusted-host {ADDRESS}\ncanary\n"
        )
        environ = {
            "LARKSPUR_AGENT__GATES": "off",
            "LARKSPUR_SANDBOX__PROVIDER": "bubblewrap",
            "LARKSPUR_SANDBOX__PACKAGES": str(requirements),
            "LARKSPUR_SANDBOX__NETWORK": f'["{ADDRESS}:{port}"]',
            "LARKSPUR_SANDBOX__ALLOW_PRIVATE_NETWORKS": "true",
        }
        async with open_agent(home, script, environ) as here:
            made = await here.submit("sing", permission_mode=None)
            events = await here.end_of(made)
            first, second = here.model.requests
    assert "canary==1.0" in str(first["system"])
    assert seen_in(second).last_result.startswith("sings\n")
    (found,) = (e["payload"] for e in events if e["event"] == "workflow.artifact.manifest")
    assert [each["name"] for each in found["artifacts"]] == ["song.txt"]


@pytest.mark.needs("namespaces")
async def test_packages_that_cannot_be_installed_are_named_at_the_start(
    home: Path, tmp_path: Path
) -> None:
    environ = {"LARKSPUR_SANDBOX__PACKAGES": str(tmp_path / "absent.txt")}
    with pytest.raises(SandboxUnavailable, match=r"No such file or directory: .*absent\.txt\.$"):
        async with open_agent(home, [], environ):
            pass
