// client: svix (Node.js)
// registry: npm
// packages: svix@2.5.0
// door: webhook
import { Webhook, WebhookVerificationError } from "svix";
import { webhook } from "./webhook_scenarios.mjs";

await webhook(
  (secret, body, headers) => new Webhook(secret).verify(body, headers),
  WebhookVerificationError,
);
