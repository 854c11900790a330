"""The sandbox without isolation: commands run as the user of Larkspur."""

import asyncio
from collections.abc import Callable

from internal.agent.app.background_task import wait_for_completion
from internal.agent.ports.sandbox import SandboxCapabilities, SandboxCommand, SandboxResult
from internal.sandbox.command_io import create_home
from internal.sandbox.environment import CommandEnvironment
from internal.sandbox.launcher.command import LaunchedCommand
from internal.sandbox.launcher.process import Launcher
from internal.sandbox.workspaces import SessionFolders


class NativeSandbox:
    """Runs commands on this machine without isolation. Implements `Sandbox`.

    A command gets its own session and process group, standard input from /dev/null unless bytes are
    given, and the variables of `CommandEnvironment`. All processes that it started are ended with
    it, within two seconds; see `launcher.program` for the limits.

    Args:
        homes: the private folders of the sessions, outside of every workspace.
        environment: finds programs and makes the environment of commands.
    """

    provider: str = "native"

    def __init__(
        self, homes: SessionFolders, environment: CommandEnvironment | None = None
    ) -> None:
        self._homes = homes
        self._environment = environment or CommandEnvironment()
        self._launcher = Launcher()
        self.capabilities = SandboxCapabilities(runtimes=self._environment.runtimes())

    def close(self) -> None:
        """End the process that starts commands; running commands are not affected."""
        self._launcher.close()

    async def run(
        self, command: SandboxCommand, on_output: Callable[[bytes], None], /
    ) -> SandboxResult:
        """Run a command; see the port. An exception of `on_output` ends the command and is raised.

        Raises:
            ToolError: the program cannot be started, or the home folder cannot be created.
        """
        argv = self._environment.encode(command.argv)
        home = await asyncio.to_thread(create_home, self._homes, command.session_id)
        variables = self._environment.variables(home, command.environment)
        execution = LaunchedCommand(self._launcher, command, argv, variables, on_output=on_output)
        return await wait_for_completion(execution.run(), execution.request_end)
