"""Recordings in the terminal, and after a kill."""

import json
from pathlib import Path

import pytest

from tests.support import recordings
from tests.support.cli_environment import BOTH_TRANSPORTS, open_command_line
from tests.support.scripted_model import Reply, Rules
from tests.support.transcription_server import Spoken, TranscriptionServer

VOICE = recordings.ogg_opus(5.0)


@pytest.fixture
async def service() -> TranscriptionServer:
    return TranscriptionServer(Spoken("See you at ten."))


@BOTH_TRANSPORTS
@pytest.mark.slow
async def test_a_recording_is_attached_in_the_terminal(
    way: str, home: Path, environ: dict[str, str], service: TranscriptionServer
) -> None:
    async with service:
        settings = {**environ, **service.environ}
        async with open_command_line(way, home, settings, [Reply(text="At ten.")]) as cli:
            (cli.folder / "voice.ogg").write_bytes(VOICE)
            shot = await cli.shot("When?", "-f", "voice.ogg")
    assert (shot.code, shot.out) == (0, b"At ten.\n"), shot.err
    message = json.dumps(cli.model.requests[0]["messages"][-1])
    assert r"seconds=\"5.0\">\n[transcript]\nSee you at ten.\n</attachment>" in message
    assert service.count == 1


@pytest.mark.slow
async def test_a_recording_is_not_paid_for_again_after_a_kill(
    home: Path, environ: dict[str, str], service: TranscriptionServer
) -> None:
    async with service:
        settings = {**environ, **service.environ}
        script = Rules([Reply(text="At ten.", hold="go")])
        async with open_command_line("gateway", home, settings, script) as cli:
            (cli.folder / "voice.ogg").write_bytes(VOICE)
            process = await cli.start("-p", "When?", "-f", "voice.ogg")
            await cli.model.until_asked(1)
            cli.gateways[0].kill()
            await cli.gateways[0].wait()
            await cli.serve()
            cli.model.release("go")
            out, _ = await process.communicate()
    assert (process.returncode, out) == (0, b"At ten.\n")
    first, *_, last = cli.model.requests
    assert first["messages"] == last["messages"]
    assert len(cli.model.requests) > 1
    assert service.count == 1
