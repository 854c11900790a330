// Follows a stream with the package eventsource, and prints each message as a line of JSON.
import { EventSource } from 'eventsource';

const authorization = `Bearer ${process.env.LARKSPUR_KEY}`;
const source = new EventSource(process.argv[2], {
  fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, authorization } }),
});
source.onmessage = (message) => {
  const { lastEventId: id, data } = message;
  process.stdout.write(`${JSON.stringify({ id, data: JSON.parse(data) })}\n`);
};
source.onerror = ({ code, message }) => process.stderr.write(`${code ?? ''} ${message ?? 'the stream ended'}\n`);
// The package lets a process end while it waits for its next connection.
setInterval(() => {}, 60_000);
