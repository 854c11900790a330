"""Paths that a definition grants and that no command can get, or that would have no effect."""

from pathlib import Path

from internal.mcp.definitions import DefinitionError, ServerDefinition

_OWN_MOUNTS = ("/dev", "/proc", "/tmp", "/var/tmp")  # noqa: S108 - those of a command itself
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
_SECRET_FOLDERS = (".ssh", ".gnupg", ".aws", ".kube", ".docker", ".config/gcloud", ".azure")
_SECRET_FILES = (".netrc", ".npmrc", ".pypirc", ".git-credentials", ".config/uv/credentials.toml")


def check_paths(definition: ServerDefinition) -> None:
    """Check the paths that a person grants to a server. Blocks.

    Raises:
        DefinitionError: a path does not exist, is a folder of secrets, or is covered by a path that
            the sandbox provides itself.
    """
    home = Path.home()
    for option, paths in (("read", definition.read_only), ("write", definition.writable)):
        for text in paths:
            reason = _refusal(Path(text), home, is_written=option == "write")
            if reason:
                raise DefinitionError(f"--{option} {text} cannot work: {reason}.")


def _refusal(path: Path, home: Path, *, is_written: bool) -> str:
    """Return why a path cannot be granted, "" if it can."""
    try:
        real = path.resolve(strict=True)
    except OSError:
        return "it does not exist"
    for name in (*_SECRET_FOLDERS, *_SECRET_FILES):
        secret = (home / name).resolve()
        if real.is_relative_to(secret):
            return f"{secret} has secrets, which servers do not get; name another folder"
    if any(path == Path(one) for one in _OWN_MOUNTS):
        return f"commands have a {path} of their own; name a folder in it"
    if is_written and any(real.is_relative_to(one) for one in _SYSTEM):
        return "it belongs to the system; commands only read it"
    return ""
