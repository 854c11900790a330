// HTTP client of the simulator: login, actions and long polling.

const post = (path, body) =>
  fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

// Exchange the key in the URL for a cookie and remove it from the URL.
export async function login() {
  const key = new URLSearchParams(location.hash.slice(1)).get("key");
  if (!key) return;
  history.replaceState(null, "", "/");
  await post("/_sim/login", { key });
}

// Perform an action; throws an Error with the server's message.
export async function act(name, body = {}) {
  const answer = await post(`/_sim/${name}`, body);
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
      const answer = await fetch(`/_sim/changes?since=${version}&log=${log}`);
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
