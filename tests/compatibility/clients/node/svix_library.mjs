// client: svix (Node.js)
// registry: npm
// packages: svix@2.5.0
// door: webhook
import { Webhook, WebhookVerificationError } from "svix";
import { webhook } from "./webhook_scenarios.mjs";

// As docs/hooks.md says: what is not in Base64 is given as it is.
const optionsOf = (secret) => (secret.startsWith("whsec_") ? {} : { format: "raw" });

await webhook(
  (secret, body, headers) => new Webhook(secret, optionsOf(secret)).verify(body, headers),
  WebhookVerificationError,
);
