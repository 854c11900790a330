"""Packages for commands, installed by the real pip from a local index."""

import zipfile
from collections.abc import Generator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from msgspec import structs

from internal.agent.domain.errors import SandboxUnavailable
from internal.agent.domain.permissions.network import NetworkAccess
from internal.agent.domain.permissions.rules import HostPattern
from internal.agent.ports.sandbox import Sandbox
from internal.sandbox.packages import PackageEnvironment, find_packages, install_packages
from internal.sandbox.roots import PrivatePlaces
from internal.sandbox.selection import open_sandbox
from tests.support.bubblewrap_places import ADDRESS, Place, package_index

NAME = "installed.txt"  # a file written there once


class Installation:
    """A requirements file with the opener of the sandbox; `opened` counts how often it ran."""

    def __init__(self, root: Path, port: int) -> None:
        self.place = Place(root)
        self.folder = root / "packages"
        self.file = root / "requirements.txt"
        self.wheel = next(root.glob("index/canary/*.whl"))
        self.url = f"--index-url http://{ADDRESS}:{port}/ --trusted-host {ADDRESS}\n"
        self.network = NetworkAccess((HostPattern(ADDRESS, subdomains=False, port=port),))
        self.opened = 0

    async def install(self, provider: str, requirements: str) -> PackageEnvironment:
        self.file.write_text(f"{self.url}{requirements}\n")

        def open_once() -> AbstractAsyncContextManager[Sandbox]:
            self.opened += 1
            chosen: dict[str, AbstractAsyncContextManager[Sandbox]] = {
                "bubblewrap": open_sandbox(
                    "bubblewrap", self.place.homes, PrivatePlaces(), private_networks=True
                ),
                "native": open_sandbox("native", self.place.homes, PrivatePlaces()),
            }
            return chosen[provider]

        return await install_packages(self.file, self.folder, open_once, self.network)


@pytest.fixture
def installation(tmp_path: Path) -> Generator[Installation]:
    with package_index(tmp_path, ADDRESS) as port:
        yield Installation(tmp_path, port)


@pytest.mark.needs("namespaces")
@pytest.mark.slow
async def test_packages_are_installed_once_and_found_by_commands(
    installation: Installation,
) -> None:
    made = await installation.install("bubblewrap", "canary==1.0")
    assert "canary==1.0" in made.installed
    found = find_packages(installation.file, installation.folder)
    assert found is not None
    assert found.installed == made.installed
    assert (await installation.install("bubblewrap", "canary==1.0")).programs == made.programs
    assert installation.opened == 1
    place = installation.place
    script = "python3 -c 'import canary'; (: > $(dirname $(which python3))/x) && echo changed"
    command = structs.replace(place.command(script))
    for provider in ("bubblewrap", "landlock", "native"):
        place.output = b""
        async with open_sandbox(provider, place.homes, PrivatePlaces(), packages=made) as sandbox:
            assert sandbox.capabilities.packages == made.installed
            await sandbox.run(command, place.take)
        assert place.output.startswith(b"sings\n"), provider
        assert (b"changed" in place.output) == (provider == "native")


@pytest.mark.needs("namespaces")
@pytest.mark.slow
async def test_a_package_writes_nothing_elsewhere_by_a_link(
    installation: Installation, tmp_path: Path
) -> None:
    outside = tmp_path / "profile"
    outside.write_text("of the person")
    link = f"os.path.lexists({NAME!r}) or os.symlink({str(outside)!r}, {NAME!r})"
    with zipfile.ZipFile(installation.wheel, "a") as archive:  # runs whenever Python starts there
        archive.writestr("canary.pth", f"import os; {link}")
    made = await installation.install("bubblewrap", "canary==1.0")
    assert "canary==1.0" in made.installed
    assert Path(made.programs).with_name(NAME).is_symlink()
    assert outside.read_text() == "of the person"


@pytest.mark.needs("namespaces")
@pytest.mark.slow
async def test_a_package_that_cannot_be_installed_is_named(installation: Installation) -> None:
    with pytest.raises(SandboxUnavailable, match=r"cannot be installed: .*no-such-package"):
        await installation.install("native", "no-such-package")
    assert find_packages(installation.file, installation.folder) is None
    assert [each.name for each in installation.folder.iterdir()] == [".lock"]


async def test_a_file_that_cannot_be_read_is_named(installation: Installation) -> None:
    absent = installation.folder / "absent.txt"
    with pytest.raises(SandboxUnavailable, match=r"No such file .*absent\.txt\.$"):
        await install_packages(
            absent, installation.folder, lambda: pytest.fail("opened"), installation.network
        )
    with pytest.raises(SandboxUnavailable, match="No such file"):
        find_packages(absent, installation.folder)
    installation.url = "# " + "x" * 1_000_000
    with pytest.raises(SandboxUnavailable, match="larger than 1 MB"):
        await installation.install("native", "")
