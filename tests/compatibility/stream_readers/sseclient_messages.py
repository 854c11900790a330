"""Follows a stream with the package sseclient, and prints each message as a line of JSON."""

import json
import os
import sys
from typing import Any

from sseclient import SSEClient

# the package prints the end of a stream
messages, sys.stdout = sys.stdout, sys.stderr

HEADERS = {"Authorization": f"Bearer {os.environ['LARKSPUR_KEY']}"}
# mypy reads the types of sseclient-py, which has the same module
client: Any = SSEClient
for message in client(sys.argv[1], headers=HEADERS):
    if not message.data:
        # the last chunk of a stream: the package reads below the transfer coding
        continue
    line = {"id": message.id or "", "data": json.loads(message.data)}
    messages.write(f"{json.dumps(line)}\n")
    messages.flush()
