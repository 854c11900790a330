# client: standardwebhooks (Python)
# registry: PyPI
# packages: standardwebhooks==1.1.0
# door: webhook
import webhook_scenarios
from standardwebhooks.webhooks import Webhook, WebhookVerificationError


def verify(secret, body, headers):
    # As docs/hooks.md says: what is not in Base64 is given as bytes.
    given = secret if secret.startswith("whsec_") else secret.encode()
    Webhook(given).verify(body, headers)


webhook_scenarios.webhook(verify, WebhookVerificationError)
