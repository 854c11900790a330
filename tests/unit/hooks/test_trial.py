"""Trials of webhooks and the stored part of a response."""

import json

import pytest
from pydantic import SecretStr

from internal.agent.domain.events.types import EVENTS
from internal.hooks.signed_post import SignedPoster
from internal.hooks.trial import MAX_WORDS_CHARACTERS, TEST_EVENT, Trial, try_webhook
from internal.observability.clock import SystemClock
from internal.settings.hooks import WebhookSettings
from tests.support.raw_server import RawServer, raw_server, response

CANARY = "canary-0123456789"


async def tried(answer: bytes) -> tuple[Trial, RawServer]:
    """Send a test event to a server with one answer."""
    clock = SystemClock()
    poster = SignedPoster(clock)
    async with raw_server(answer) as server:
        webhook = WebhookSettings(
            url=f"http://127.0.0.1:{server.port}/events",
            secret=SecretStr(CANARY),
            events=("workflow.result.*",),
        )
        trial = await try_webhook(webhook, poster, clock)
        await poster.close()
    return trial, server


async def test_the_test_event_is_an_envelope_with_a_name_of_its_own() -> None:
    trial, server = await tried(response(b"thanks"))
    assert trial._replace(seconds=0) == Trial("accepted", 0, 200)
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    event = json.loads(body)
    assert f"webhook-id: {event['event_id']}".encode() in head
    assert (event["event"], event["payload"]) == (TEST_EVENT, {})
    assert TEST_EVENT not in {each.name for each in EVENTS}


async def test_a_redirect_says_where_it_leads() -> None:
    answer = response(b"", "location: https://b.example/hook", status=308)
    trial, _ = await tried(answer)
    assert (trial.outcome, trial.location) == ("rejected", "https://b.example/hook")


@pytest.mark.parametrize("body", [f"not {CANARY}".encode(), b"\xff" * 5_000])
async def test_the_words_of_a_receiver_are_short_and_without_secrets(body: bytes) -> None:
    trial, _ = await tried(response(body, status=403))
    assert 0 < len(trial.words) <= MAX_WORDS_CHARACTERS + 100
    assert CANARY not in trial.words
