# client: standardwebhooks (Python)
# registry: PyPI
# packages: standardwebhooks==1.1.0
# door: webhook
import webhook_scenarios
from standardwebhooks.webhooks import Webhook, WebhookVerificationError


def verify(secret, body, headers):
    Webhook(secret).verify(body, headers)


webhook_scenarios.webhook(verify, WebhookVerificationError)
