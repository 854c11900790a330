"""Real processes: a gateway behind a proxy, and messages that are sent again from the terminal."""

import asyncio
import json
from pathlib import Path

import pytest

from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.simulator import LarkSim
from tests.support.certificates import make_authority
from tests.support.channel_command import larkspur
from tests.support.connect_proxy import open_connect_proxy
from tests.support.lark_gateway import APP
from tests.support.lark_process import replies, served
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import Reply

NOT_IN_CHAT = 230002


@pytest.mark.slow
async def test_a_message_that_was_given_up_is_sent_again_by_the_running_gateway(
    tmp_path: Path,
) -> None:
    async with (
        LarkSim([APP], speed=100.0) as sim,
        ScriptedOpenAI([Reply(text="the answer")]) as model,
        served(tmp_path, sim, model),
    ):
        await sim.until(lambda _: bool(sim.lark.delivery.connections), 60)
        refused = AnswerFault("code", "/im/v1/messages", times=10_000, code=NOT_IN_CHAT)
        sim.faults.answers.append(refused)
        await sim.send_text(sim.people[0], sim.dm(sim.people[0]), "hello")
        letters: list[dict[str, object]] = []
        async with asyncio.timeout(60):
            while not letters:
                _, out, _ = await larkspur(tmp_path, "dead-letters", "--json")
                letters = json.loads(out)
        assert [one["about"] for one in letters] == ["hello"]
        assert f"({NOT_IN_CHAT})" in str(letters[0]["reason"])
        assert "(log id " in str(letters[0]["reason"])
        refused.times = 0
        assert (await larkspur(tmp_path, "dead-letters", "retry", "all"))[0] == 0
        await sim.until(lambda _: replies(sim) == ["the answer"])
        assert (await larkspur(tmp_path, "dead-letters", "--json"))[1].strip() == "[]"


@pytest.mark.needs("openssl")
@pytest.mark.slow
async def test_the_proxy_and_the_certificates_of_the_settings_are_used(tmp_path: Path) -> None:
    authority = make_authority(tmp_path, "open.lark.test")
    async with (
        LarkSim([APP], speed=100.0, tls=authority.server) as sim,
        open_connect_proxy("user:pass-7") as proxy,
        ScriptedOpenAI([Reply(text="through the tunnel")]) as model,
        served(
            tmp_path,
            sim,
            model,
            HTTPS_PROXY=f"http://user:pass-7@127.0.0.1:{proxy.port}",
            LARKSPUR_CHANNELS__LARK__CA_FILE=str(authority.ca_file),
        ) as here,
    ):
        await sim.until(lambda _: bool(sim.lark.delivery.connections), 60)
        await sim.send_text(sim.people[0], sim.dm(sim.people[0]), "hello")
        await sim.until(lambda _: replies(sim) == ["through the tunnel"])
        assert set(proxy.tunnels) == {sim.url.removeprefix("https://")}
        here.process.terminate()
        await here.over()
        assert "pass-7" not in "\n".join(here.said)
