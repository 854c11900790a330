"""Health check of a container: exits with 1 unless its process answers and is not failing.

A degraded gateway or worker serves people, for instance while one message cannot be sent: it must
not be restarted or taken out of service. Standard library only.

Usage: check_health.py [port]
"""

import http.client
import json
import sys

TIMEOUT_SECONDS = 4.0


def read_status(port: int) -> str:
    """Return the `status` of the gateway or worker on this port of 127.0.0.1.

    Raises:
        OSError, ValueError, KeyError, http.client.HTTPException: none answers there.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    connection.request("GET", "/health")
    return str(json.load(connection.getresponse())["status"])


def main() -> int:
    """Print the status, or why there is none, and return the exit code."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8420
    try:
        status = read_status(port)
    except (OSError, ValueError, KeyError, http.client.HTTPException) as error:
        print(f"no answer on port {port}: {error!r}")
        return 1
    print(status)
    return int(status == "failing")


if __name__ == "__main__":
    sys.exit(main())
