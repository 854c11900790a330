"""The programs and the environment variables of commands, the same in every sandbox."""

import os
import shutil
from collections.abc import Mapping

from internal.agent.domain.errors import ToolError
from internal.agent.ports.sandbox import RUNTIME_PROGRAMS, Runtime

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_XDG = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
}

# The configuration of a repository names programs; git uses the values given here instead of its.
_GIT_CONFIG = {
    "safe.bareRepository": "explicit",  # a bare repository can be checked in like any folder
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.alternateRefsCommand": "true",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "push.gpgSign": "false",
    "log.showSignature": "false",
    "gpg.program": "gpg",
    "gpg.openpgp.program": "gpg",
    "gpg.x509.program": "gpgsm",
    "gpg.ssh.program": "ssh-keygen",
    "gpg.ssh.defaultKeyCommand": "true",
    "credential.helper": "",  # ends the list of helpers
    "interactive.diffFilter": "cat",
    "protocol.ext.allow": "never",
}
_GIT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_COUNT": str(len(_GIT_CONFIG)),
    **{f"GIT_CONFIG_KEY_{number}": key for number, key in enumerate(_GIT_CONFIG)},
    **{f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(_GIT_CONFIG.values())},
    "GIT_PAGER": "cat",
    "GIT_EDITOR": ":",  # git takes the text as it is and starts nothing
    "GIT_SEQUENCE_EDITOR": ":",
    "GIT_SSH_COMMAND": "ssh",
    "GIT_PROXY_COMMAND": "",
    "GIT_ASKPASS": "",
    "GIT_TERMINAL_PROMPT": "0",
}


class CommandEnvironment:
    """Finds the programs of commands, and makes their environment variables.

    A command gets PATH, LANG, TZ, TERM, HOME and XDG_* (the private folder of the session) and
    variables that keep Python and git from running programs of the workspace. No variable of
    Larkspur's own environment is passed on.

    Args:
        path: where programs are looked up. Relative and empty entries are removed, because a
            workspace could replace programs with them.
        lang: the locale of the commands.
        timezone: the TZ of the commands, such as Asia/Shanghai; "" for the machine's.
    """

    def __init__(self, path: str = DEFAULT_PATH, lang: str = "C.UTF-8", timezone: str = "") -> None:
        self._path = os.pathsep.join(
            entry for entry in path.split(os.pathsep) if entry.startswith("/")
        )
        self._variables = {
            "PATH": self._path,
            "LANG": lang,
            "TERM": "dumb",
            "PYTHONNOUSERSITE": "1",
            **_GIT,
        }
        if timezone:
            self._variables["TZ"] = timezone

    @property
    def path(self) -> str:
        """The folders in which commands find programs."""
        return self._path

    def variables(self, home: str, further: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a command whose private folder is `home`."""
        folders = {name: f"{home}/{folder}" for name, folder in _XDG.items()}
        own = {**further, "HOME": home, "XDG_RUNTIME_DIR": home}
        return {**self._variables, **own, **folders}

    def runtimes(self) -> tuple[Runtime, ...]:
        """Return the languages whose programs are on this machine."""
        programs = RUNTIME_PROGRAMS.items()
        return tuple(each for each, name in programs if shutil.which(name, path=self._path))

    def encode(self, argv: tuple[str, ...], *, full_path: bool = True) -> list[bytes]:
        """Return the arguments as bytes.

        Args:
            argv: the program and its arguments.
            full_path: replace the name of the program by its path on this machine. A sandbox may
                hide this path and find another program of that name further on in PATH.

        Raises:
            ToolError: there is no such program, or an argument is not valid text.
        """
        found = shutil.which(argv[0], path=self._path)
        if found is None:
            raise ToolError(f"there is no program {argv[0]!r} in {self._path}")
        try:
            encoded = [os.fsencode(part) for part in (found if full_path else argv[0], *argv[1:])]
        except UnicodeEncodeError as error:
            raise ToolError(f"the command is not valid text: {error.reason}") from error
        if any(b"\0" in part for part in encoded):
            raise ToolError("the command contains a NUL character")
        return encoded
