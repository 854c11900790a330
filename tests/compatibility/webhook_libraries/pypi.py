"""Verifies requests with svix: standard input has a list of {secret, format, headers, body}."""

import json
import sys

from svix.webhooks import Webhook

for request in json.load(sys.stdin):
    is_raw = request["format"] == "raw"
    secret = request["secret"].encode() if is_raw else request["secret"]
    Webhook(secret).verify(request["body"], request["headers"])
