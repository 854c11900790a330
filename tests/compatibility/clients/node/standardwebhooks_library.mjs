// client: standardwebhooks (Node.js)
// registry: npm
// packages: standardwebhooks@1.1.1
// door: webhook
import { Webhook, WebhookVerificationError } from "standardwebhooks";
import { webhook } from "./webhook_scenarios.mjs";

// As docs/hooks.md says: what is not in Base64 is given as it is.
const optionsOf = (secret) => (secret.startsWith("whsec_") ? {} : { format: "raw" });

await webhook(
  (secret, body, headers) => new Webhook(secret, optionsOf(secret)).verify(body, headers),
  WebhookVerificationError,
);
