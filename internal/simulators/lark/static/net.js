// Talks to the simulator: the key once, then actions, and a long poll for what changed.

const post = (path, body) =>
  fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

// Trade the key in the address for a cookie, and take it out of the address.
export async function login() {
  const key = new URLSearchParams(location.hash.slice(1)).get("key");
  if (!key) return;
  history.replaceState(null, "", "/");
  await post("/_sim/login", { key });
}

// Do an action; its refusal is thrown as a sentence.
export async function act(name, body = {}) {
  const answer = await post(`/_sim/${name}`, body);
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error);
  return said;
}

// Give everything that changes to `take`, for ever; `fail` gets a sentence, "" when all is well.
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
      fail(error instanceof TypeError ? "The simulator does not answer." : error.message);
      await new Promise((done) => setTimeout(done, 2000));
    }
  }
}
