# client: svix (Python)
# registry: PyPI
# packages: svix==2.9.1
# door: webhook
import webhook_scenarios
from svix.webhooks import Webhook, WebhookVerificationError


def verify(secret, body, headers):
    # As docs/hooks.md says: what is not in Base64 is given as bytes.
    given = secret if secret.startswith("whsec_") else secret.encode()
    Webhook(given).verify(body, headers)


webhook_scenarios.webhook(verify, WebhookVerificationError)
