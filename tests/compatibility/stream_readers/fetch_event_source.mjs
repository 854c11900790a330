// Follows a stream with @microsoft/fetch-event-source, and prints each message as a line of JSON.
// The package is for browsers: it takes its timers from `window`.
globalThis.window = globalThis;
const { fetchEventSource } = await import('@microsoft/fetch-event-source');

await fetchEventSource(process.argv[2], {
  fetch,
  headers: { authorization: `Bearer ${process.env.LARKSPUR_KEY}` },
  openWhenHidden: true,
  onmessage({ id, data }) {
    process.stdout.write(`${JSON.stringify({ id, data: JSON.parse(data) })}\n`);
  },
  // the package ends with the stream unless this throws
  onclose() {
    throw new Error('the stream ended');
  },
});
