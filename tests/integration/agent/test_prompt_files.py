"""Reading of prompt files: in the event loop while that is fast, else in a thread."""

import threading
import time
from functools import partial
from pathlib import Path

from internal.agent.app.task_options import TaskOptions, build_run_spec
from internal.agent.capabilities.registry import Capabilities
from internal.agent.domain.principals import LOCAL_OWNER
from internal.config.home import prepare
from internal.documents.reader import ChildDocumentReader
from internal.sandbox.native import NativeSandbox
from larkspur.capabilities import prompt_capabilities
from larkspur.prompts import make_prompt_builder
from larkspur.services import make_tools, with_isolation
from tests.support.agent_app import open_agent


def workspace(folder: Path, threads: list[bool], *, seconds: float = 0.0) -> str:
    """Note whether this is the thread of the event loop, and use the processor for a while."""
    threads.append(threading.current_thread() is threading.main_thread())
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
    return str(folder)


async def test_local_files_are_read_in_the_event_loop_unless_the_last_time_took_long(
    tmp_path: Path,
) -> None:
    async with open_agent(prepare(tmp_path / "home"), []) as here:
        services = here.services
        sandbox = NativeSandbox(services.workspaces.homes)
        tools = make_tools(services, sandbox, ChildDocumentReader(sandbox))
        capabilities = Capabilities(prompt_capabilities(services))
        builder = make_prompt_builder(services, sandbox, tools, capabilities=capabilities)
        spec = build_run_spec(with_isolation(services, sandbox), TaskOptions(), LOCAL_OWNER, None)
        in_loop: list[bool] = []
        find = partial(workspace, tmp_path, in_loop)
        slow = partial(workspace, tmp_path, in_loop, seconds=0.05)

        await builder.begin(spec, slow, is_local=True)
        assert in_loop == [False], "nothing is known yet"
        await builder.begin(spec, find, is_local=True)
        assert in_loop == [False, False], "the last time took long"
        while True not in in_loop:  # measured with a coverage tool, it may take long once more
            await builder.begin(spec, find, is_local=True)
        await builder.begin(spec, find)
        assert not in_loop[-1], "the folders may be on a network"
