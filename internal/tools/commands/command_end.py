"""How the end of a command is described to the model."""

from internal.agent.ports.sandbox import Resource, SandboxResult

_EXCEEDED: dict[Resource, str] = {
    "memory": "[the command used more memory than it may]",
    "processes": "[the command started more processes than it may]",
    "output": "[ended: the command wrote more output than it may]",
    "disk": "[the files of this session take more disk space than they may: delete some. Until then"
    " commands write no files]",
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
    for site, is_private in finished.refused_addresses.items():
        kind = "of this machine or a private network" if is_private else "one that is never reached"
        end = f"[no network to {site}: the host is allowed, but its address is {kind}]\n{end}"
    return end
