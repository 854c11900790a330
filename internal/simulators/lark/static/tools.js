// The fault switches and the wire log.

import { byId, h } from "./dom.js";
import { act } from "./net.js";

const CHOICES = { discovery: ["", "hang", "busy", "error", "refuse"], handshake: ["", "limit", "forbidden", "busy", "bare"] };
const WORDS = {
  discovery: "Discovery",
  handshake: "Handshake refused",
  pongs: "Pings are answered",
  limits: "Frequency limits hold",
  new_event_ids: "New event_id on redelivery",
  duplicates: "Copies of each event",
  reorder: "Events held, then reversed",
  fragment_bytes: "Split events over (bytes, 0 never)",
  speed: "Speed of redelivery",
};
const ANSWERS = ["rate_limit", "bad_gateway", "lost", "slow", "code"];
const NOW = [
  ["Drop sockets", "drop", {}],
  ["Half-open sockets", "silence", {}],
  ["Down for 10 s", "down", { seconds: 10 }],
  ["Revoke tokens", "revoke", {}],
  ["Clock +1 h", "advance", { seconds: 3600 }],
];
let shown = "";

function control(name, value, set) {
  if (name in CHOICES) {
    const options = CHOICES[name].map((one) => h("option", { value: one, selected: one === value }, one || "works"));
    return h("select", { onchange: (event) => set({ [name]: event.target.value }) }, options);
  }
  if (typeof value === "boolean") return h("input", { type: "checkbox", checked: value, onchange: (event) => set({ [name]: event.target.checked }) });
  return h("input", { type: "number", min: 0, value, onchange: (event) => set({ [name]: Number(event.target.value) }) });
}

function answers(list, set) {
  const kind = h("select", { "aria-label": "What becomes of calls" }, ANSWERS.map((one) => h("option", {}, one)));
  const match = h("input", { placeholder: "METHOD /path holds …", "aria-label": "Which calls" });
  const times = h("input", { type: "number", min: 1, value: 1, "aria-label": "How often" });
  const value = h("input", { type: "number", min: 0, value: 5, "aria-label": "Seconds, or the code" });
  const add = () => {
    const fault = { kind: kind.value, match: match.value, times: Number(times.value) };
    const number = kind.value === "code" ? { code: Number(value.value) } : { seconds: Number(value.value) };
    set({ answers: [...list.filter((one) => one.times > 0), { ...fault, ...number }] });
  };
  const left = list.filter((one) => one.times > 0).map((one) => h("li", {}, `${one.kind} ${one.match} ×${one.times}`));
  return [h("p", {}, "What becomes of the next calls"), h("div", { class: "row" }, kind, match, times, value, h("button", { type: "button", onclick: add }, "Add")),
    left.length ? h("ul", {}, left, h("li", {}, h("button", { type: "button", onclick: () => set({ answers: [] }) }, "Clear"))) : null];
}

// Show the switches as they are; `tell` shows a sentence.
export function drawFaults(faults, tell) {
  const now = JSON.stringify(faults);
  if (now === shown || byId("faults").contains(document.activeElement?.closest("input"))) return;
  shown = now;
  const done = (promise) => promise.then(() => tell("Done."), (error) => tell(error.message));
  const set = (change) => done(act("faults", change));
  const rows = Object.keys(WORDS).map((name) => h("label", {}, h("span", {}, WORDS[name]), control(name, faults[name], set)));
  const buttons = NOW.map(([label, name, body]) => h("button", { type: "button", onclick: () => done(act(name, body)) }, label));
  byId("faults").replaceChildren(h("div", { class: "row" }, buttons), ...rows, ...answers(faults.answers, set).filter(Boolean));
}

const MOST = 300;
const SIGNS = { call: "⇄", "frame.out": "←", "frame.in": "→", socket: "◇", note: "·" };

// Add entries to the wire log, newest first.
export function drawLog(entries) {
  const list = byId("log");
  for (const one of entries) {
    const at = new Date(one.at_ms).toISOString().slice(11, 23);
    const result = [one.status || "", one.code ?? "", one.ms ? `${one.ms} ms` : ""].filter((part) => part !== "").join(" · ");
    const head = h("summary", {}, h("time", {}, at), ` ${SIGNS[one.kind] ?? ""} `, h("span", { class: "hint" }, result), ` ${one.what}`);
    const bad = one.status >= 400 || one.code > 200 || /late|failed|nobody|refused/.test(one.what);
    list.prepend(h("li", { class: bad ? "bad" : "" }, h("details", {}, head, h("pre", {}, [one.sent, one.got].filter(Boolean).join("\n→ ")))));
  }
  while (list.childElementCount > MOST) list.lastElementChild.remove();
}
