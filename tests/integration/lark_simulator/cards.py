"""Cards for the simulator tests."""

from typing import Any


def card(*elements: dict[str, Any], **config: Any) -> dict[str, Any]:
    """Return a card of schema 2.0 that can be patched."""
    body = {"elements": list(elements) or [markdown("hello")]}
    return {"schema": "2.0", "config": {"update_multi": True, **config}, "body": body}


def markdown(text: str, element_id: str | None = None) -> dict[str, Any]:
    named = {} if element_id is None else {"element_id": element_id}
    return {"tag": "markdown", "content": text, **named}


def button(name: str, value: Any) -> dict[str, Any]:
    return {
        "tag": "button",
        "name": name,
        "text": {"tag": "plain_text", "content": name.title()},
        "behaviors": [{"type": "callback", "value": value}],
    }
