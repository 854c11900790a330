// The fault switches and the traffic log.

import { byId, h } from "./dom.js";
import { act } from "./net.js";

const CHOICES = { discovery: ["", "hang", "busy", "error", "refuse"], handshake: ["", "limit", "forbidden", "busy", "bare"] };
const LABELS = {
  discovery: "Discovery",
  handshake: "Reject handshakes",
  pongs: "Answer pings",
  limits: "Enforce rate limits",
  new_event_ids: "New event_id on redelivery",
  duplicates: "Duplicates of each event",
  reorder: "Events held back and reversed",
  fragment_bytes: "Split events longer than (bytes, 0: never)",
  speed: "Redelivery speed factor",
};
const ANSWERS = ["rate_limit", "bad_gateway", "lost", "cut", "slow", "late", "code", "no_data"];
const NOW = [
  ["Drop sockets", "drop", {}],
  ["Half-open sockets", "silence", {}],
  ["Deaf sockets", "deafen", {}],
  ["Outage for 10 s", "down", { seconds: 10 }],
  ["Revoke tokens", "revoke", {}],
  ["Clock +1 h", "advance", { seconds: 3600 }],
];
let shown = "";

function control(name, value, set) {
  if (name in CHOICES) {
    const options = CHOICES[name].map((one) => h("option", { value: one, selected: one === value }, one || "off"));
    return h("select", { onchange: (event) => set({ [name]: event.target.value }) }, options);
  }
  if (typeof value === "boolean") return h("input", { type: "checkbox", checked: value, onchange: (event) => set({ [name]: event.target.checked }) });
  return h("input", { type: "number", min: 0, value, onchange: (event) => set({ [name]: Number(event.target.value) }) });
}

function answers(list, set) {
  const kind = h("select", { "aria-label": "Fault" }, ANSWERS.map((one) => h("option", {}, one)));
  const match = h("input", { placeholder: "METHOD /path contains …", "aria-label": "Which calls" });
  const times = h("input", { type: "number", min: 1, value: 1, "aria-label": "Number of calls" });
  const value = h("input", { type: "number", min: 0, value: 5, "aria-label": "Seconds or code" });
  const add = () => {
    const fault = { kind: kind.value, match: match.value, times: Number(times.value) };
    const number = kind.value === "code" ? { code: Number(value.value) } : { seconds: Number(value.value) };
    set({ answers: [...list.filter((one) => one.times > 0), { ...fault, ...number }] });
  };
  const left = list.filter((one) => one.times > 0).map((one) => h("li", {}, `${one.kind} ${one.match} ×${one.times}`));
  return [h("p", {}, "Faults of the next calls"), h("div", { class: "row" }, kind, match, times, value, h("button", { type: "button", onclick: add }, "Add")),
    left.length ? h("ul", {}, left, h("li", {}, h("button", { type: "button", onclick: () => set({ answers: [] }) }, "Clear"))) : null];
}

// Show the current switches; `notify` shows a message.
export function drawFaults(faults, notify) {
  const now = JSON.stringify(faults);
  if (now === shown || byId("faults").contains(document.activeElement?.closest("input"))) return;
  shown = now;
  const done = (promise) => promise.then(() => notify("Done."), (error) => notify(error.message));
  const set = (change) => done(act("faults", change));
  const rows = Object.keys(LABELS).map((name) => h("label", {}, h("span", {}, LABELS[name]), control(name, faults[name], set)));
  const buttons = NOW.map(([label, name, body]) => h("button", { type: "button", onclick: () => done(act(name, body)) }, label));
  byId("faults").replaceChildren(h("div", { class: "row" }, buttons), ...rows, ...answers(faults.answers, set).filter(Boolean));
}

const MAX_ENTRIES = 300;
const SYMBOLS = { call: "⇄", "frame.out": "←", "frame.in": "→", socket: "◇", note: "·" };

// Add entries to the log, newest first.
export function drawLog(entries) {
  const list = byId("log");
  for (const one of entries) {
    const at = new Date(one.at_ms).toISOString().slice(11, 23);
    const result = [one.status || "", one.code ?? "", one.ms ? `${one.ms} ms` : ""].filter((part) => part !== "").join(" · ");
    const head = h("summary", {}, h("time", {}, at), ` ${SYMBOLS[one.kind] ?? ""} `, h("span", { class: "hint" }, result), ` ${one.what}`);
    const bad = one.status >= 400 || one.code > 200 || /late|failed|nobody|rejected/.test(one.what);
    list.prepend(h("li", { class: bad ? "bad" : "" }, h("details", {}, head, h("pre", {}, [one.sent, one.got].filter(Boolean).join("\n→ ")))));
  }
  while (list.childElementCount > MAX_ENTRIES) list.lastElementChild.remove();
}
