// Verifies requests with the libraries of npm: standard input has a list of {secret, format, headers, body}.
import { readFileSync } from 'node:fs';
import * as standard from 'standardwebhooks';
import * as svix from 'svix';

for (const { secret, format, headers, body } of JSON.parse(readFileSync(0, 'utf8'))) {
  for (const { Webhook } of [standard, svix]) new Webhook(secret, { format }).verify(body, headers);
}
