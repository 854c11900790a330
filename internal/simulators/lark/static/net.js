// HTTP client of the simulator: login, actions, files and long polling.

const KEY = "larksim.key";
const files = new Map();

// Send a request with the key. It is not a cookie, which browsers send to all ports of the host.
const request = (path, options = {}) =>
  fetch(path, {
    ...options,
    headers: { "content-type": "application/json", authorization: `Bearer ${localStorage.getItem(KEY) ?? ""}` },
  });

// Keep the key in the URL and remove it from there.
export function login() {
  const key = new URLSearchParams(location.hash.slice(1)).get("key");
  if (!key) return;
  history.replaceState(null, "", "/");
  localStorage.setItem(KEY, key);
}

// Return a URL of the content of a file, which is kept until the page is closed.
export function media(key) {
  if (!files.has(key)) files.set(key, load(key));
  return files.get(key);
}

async function load(key) {
  const answer = await request(`/_sim/media/${encodeURIComponent(key)}`);
  return answer.ok ? URL.createObjectURL(await answer.blob()) : "";
}

// Perform an action; throws an Error with the server's message.
export async function act(name, body = {}) {
  const answer = await request(`/_sim/${name}`, { method: "POST", body: JSON.stringify(body) });
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error);
  return said;
}

// Pass every change to `take`, indefinitely; `fail` gets an error message, or "" after recovery.
export async function follow(take, fail) {
  let version = 0;
  let log = 0;
  for (;;) {
    try {
      const answer = await request(`/_sim/changes?since=${version}&log=${log}`);
      const said = await answer.json();
      if (!answer.ok) throw new Error(said.error);
      const restarted = said.version < version || said.log_number < log;
      if (restarted) return location.reload();
      version = said.version;
      log = said.log_number;
      fail("");
      take(said);
    } catch (error) {
      fail(error instanceof TypeError ? "Can't reach the simulator." : error.message);
      await new Promise((done) => setTimeout(done, 2000));
    }
  }
}
