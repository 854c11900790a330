# client: svix (Python)
# registry: PyPI
# packages: svix==2.9.1
# door: webhook
import webhook_scenarios
from svix.webhooks import Webhook, WebhookVerificationError


def verify(secret, body, headers):
    Webhook(secret).verify(body, headers)


webhook_scenarios.webhook(verify, WebhookVerificationError)
