"""Scenarios for libraries that verify signatures, over deliveries of a gateway."""

import json
import os
from pathlib import Path

import scenarios

DELIVERIES = json.loads(Path(os.environ["LARKSPUR_DELIVERIES"]).read_text(encoding="utf-8"))


def webhook(verify, refusal):
    """Do all scenarios. `verify(secret, body, headers)` raises `refusal` for a wrong signature."""

    def verified(delivery, body):
        try:
            verify(delivery["secret"], body, delivery["headers"])
        except refusal:
            return False
        return True

    prefixed, plain = DELIVERIES["prefixed"], DELIVERIES["plain"]
    scenarios.attempt("prefixed secret", lambda: verified(prefixed, prefixed["body"]))
    scenarios.attempt("plain secret", lambda: verified(plain, plain["body"]))
    scenarios.attempt("changed body", lambda: verified(prefixed, prefixed["body"] + " "))
