"""Description of the end of a command for the model."""

from internal.agent.ports.sandbox import Resource, SandboxResult

_EXCEEDED: dict[Resource, str] = {
    "memory": "[the command used more memory than it may]",
    "processes": "[the command started more processes than it may]",
    "output": "[ended: the command wrote more output than it may]",
    "disk": "[the files of this session take more disk space than they may: delete some. Until then"
    " commands write no files]",
    "connections": "[the command had more connections open at once than it may: some were broken]",
}


def describe_end(finished: SandboxResult, seconds: float) -> str:
    """Return how a command ended, in one to three lines."""
    end = f"[exit code {finished.exit_code}]"
    if finished.timed_out:
        end = f"[ended after {seconds:g} s with all it had started]"
    elif finished.exceeded is not None:
        end = f"{_EXCEEDED[finished.exceeded]}\n{end}"
    if finished.refused:
        sites = ", ".join(finished.refused)
        end = f"[no network to {sites}: name the hosts in `network` to ask for them]\n{end}"
    if finished.forbidden:
        sites = ", ".join(finished.forbidden)
        end = f"[no network to {sites}: the address of the host is never reached]\n{end}"
    if finished.refused_addresses:
        sites = ", ".join(finished.refused_addresses)
        end = (
            f"[no network to {sites}: the host is allowed, but its address is of this machine or of"
            f" a private network, which the owner allows in the settings]\n{end}"
        )
    return end
