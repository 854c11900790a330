// client: standardwebhooks (Node.js)
// registry: npm
// packages: standardwebhooks@1.1.1
// door: webhook
import { Webhook, WebhookVerificationError } from "standardwebhooks";
import { webhook } from "./webhook_scenarios.mjs";

await webhook(
  (secret, body, headers) => new Webhook(secret).verify(body, headers),
  WebhookVerificationError,
);
