// The simulator's chat page. All state comes from long polling; every change redraws from it.

import { byId, h } from "./dom.js";
import { drawMessage, gist } from "./message.js";
import { act, follow, login } from "./net.js";
import { drawFaults, drawLog } from "./tools.js";

const NEAR_END = 80;
const TOAST_MS = 6000;
const messages = new Map();
const unread = new Set();
let state = { people: [], chats: [], apps: [], faults: {} };
let me = "";
let chat = "";
let replying = null;
let toastTimer = 0;

function notify(sentence, kind = "info") {
  const toast = byId("toast");
  toast.textContent = sentence;
  toast.className = sentence ? kind : "";
  clearTimeout(toastTimer);
  if (sentence) toastTimer = setTimeout(() => notify(""), TOAST_MS);
}

const attempt = (promise) => promise.catch((error) => notify(error.message, "error"));
const currentChat = () => state.chats.find((one) => one.chat_id === chat);
const name = (id) =>
  [...state.people, ...state.apps].find((one) => one.open_id === id || one.app_id === id)?.name ?? id;

const handlers = {
  name,
  get me() {
    return me;
  },
  find: (id) => messages.get(id),
  react: (message, emoji) => attempt(act("react", { person: me, message: message.message_id, emoji })),
  recall: (message) => attempt(act("recall", { person: me, message: message.message_id })),
  again: (message) => attempt(act("redeliver", { message: message.message_id })),
  reply: (message) => reply(message, false),
  thread: (message) => reply(message, true),
  async press(message, press) {
    const outcome = await attempt(act("click", { person: me, message: message.message_id, press }));
    if (outcome?.error) notify(`Card not updated: ${outcome.error}`, "error");
    else if (outcome?.toast) notify(outcome.toast.content, outcome.toast.type);
  },
};

function reply(message, inThread) {
  replying = message && { reply_to: message.message_id, in_thread: inThread };
  byId("reply").hidden = !message;
  const cancel = h("button", { type: "button", "aria-label": "Cancel reply", onclick: () => reply(null) }, "✕");
  byId("reply").replaceChildren(message ? `${inThread ? "Reply in thread" : "Reply"} to ${gist(message)} ` : "", message ? cancel : "");
  if (message) byId("text").focus();
}

function drawPeople() {
  const select = byId("me");
  if (!state.people.some((one) => one.open_id === me)) me = state.people[0]?.open_id ?? "";
  select.replaceChildren(...state.people.map((one) => h("option", { value: one.open_id, selected: one.open_id === me }, one.name)));
}

function drawChats() {
  const mine = state.chats.filter((one) => one.members.includes(me));
  if (!mine.some((one) => one.chat_id === chat)) chat = mine[0]?.chat_id ?? "";
  const item = (one) =>
    h("li", {}, h("button", { type: "button", "aria-current": one.chat_id === chat ? "true" : null, onclick: () => open(one.chat_id) },
      h("span", {}, one.mode === "p2p" ? one.name : `# ${one.name}`), unread.has(one.chat_id) ? h("span", { class: "dot", title: "unread" }, "●") : null));
  byId("chats").replaceChildren(...mine.map(item));
  const now = currentChat();
  byId("title").textContent = !now ? "" : now.mode === "p2p" ? now.name : `# ${now.name}`;
  const place = byId("bot-place");
  place.hidden = !now || now.mode === "p2p";
  place.textContent = now?.bots.length ? "Remove the bot" : "Add the bot";
}

function open(id) {
  chat = id;
  unread.delete(id);
  reply(null);
  drawChats();
  drawMessages();
  attempt(act("enter", { person: me, chat }));
  byId("text").focus();
}

function drawMessages() {
  const list = byId("messages");
  const shown = [...messages.values()].filter((one) => one.chat_id === chat);
  const empty = h("li", { class: "hint" }, "Send a message. In groups, mention the bot with @.");
  list.replaceChildren(...(shown.length ? shown.map((one) => drawMessage(one, handlers)) : [empty]));
  list.scrollTop = list.scrollHeight;
}

function drawChanged(changed) {
  const list = byId("messages");
  const following = list.scrollHeight - list.scrollTop - list.clientHeight < NEAR_END;
  for (const message of changed) {
    const fresh = !messages.has(message.message_id);
    messages.set(message.message_id, message);
    if (message.chat_id !== chat) {
      if (fresh && message.sender.id !== me) unread.add(message.chat_id);
      continue;
    }
    const old = byId(message.message_id);
    const node = drawMessage(message, handlers, old);
    if (old) old.replaceWith(node);
    else {
      list.querySelector(":scope > .hint")?.remove();
      list.append(node);
    }
  }
  if (following) list.scrollTop = list.scrollHeight;
}

function update(changes) {
  const first = !chat;
  state = changes;
  const links = changes.apps.map((app) => `${app.name}: ${app.connections ? "connected" : "not connected"}`);
  byId("links").textContent = `${links.join(", ")}${changes.down ? " · outage" : ""}`;
  drawPeople();
  if (first) {
    drawChats();
    for (const message of changes.messages) messages.set(message.message_id, message);
    drawMessages();
  } else drawChanged(changes.messages);
  drawChats();
  drawFaults(changes.faults, notify);
  drawLog(changes.log);
}

async function send(event) {
  event?.preventDefault();
  const text = byId("text").value.trim();
  if (!text) return;
  const mentions = mentionable().filter((one) => hasMention(text, one.name)).map((one) => one.open_id);
  const sent = await attempt(act("send", { person: me, chat, text, mentions, ...(replying ?? {}) }));
  if (!sent) return;
  byId("text").value = "";
  reply(null);
}

function mediaKind(type) {
  if (type.startsWith("image/") && !type.includes("svg")) return "image";
  if (type === "audio/ogg") return "audio";
  return type.startsWith("video/") ? "media" : "file";
}

async function upload(file) {
  if (!file) return;
  const url = await new Promise((done) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.readAsDataURL(file);
  });
  const data = url.slice(url.indexOf(",") + 1);
  await attempt(act("upload", { person: me, chat, name: file.name || "image.png", data, kind: mediaKind(file.type), reply_to: replying?.reply_to ?? "" }));
  reply(null);
}

function hasMention(text, name) {
  return text.split(`@${name}`).slice(1).some((rest) => !/^\w/.test(rest));
}

function mentionable() {
  const now = currentChat();
  const bots = state.apps.filter((one) => now?.bots.includes(one.app_id));
  const people = state.people.filter((one) => now?.members.includes(one.open_id) && one.open_id !== me);
  return [...bots, ...people, { open_id: "all", name: "all" }];
}

function offerPeople() {
  const bar = byId("people");
  const choose = (one) => {
    const field = byId("text");
    field.value = field.value.replace(/@$/, "") + `@${one.name} `;
    bar.hidden = true;
    field.focus();
  };
  bar.replaceChildren(...mentionable().map((one) => h("button", { type: "button", onclick: () => choose(one) }, `@${one.name}`)));
  bar.hidden = !bar.hidden;
}

async function ask(question) {
  const dialog = byId("ask");
  byId("ask-text").textContent = question;
  byId("ask-input").value = "";
  dialog.returnValue = "";
  dialog.showModal();
  await new Promise((done) => dialog.addEventListener("close", done, { once: true }));
  return dialog.returnValue && byId("ask-input").value.trim();
}

byId("composer").addEventListener("submit", send);
byId("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) send(event);
  if (event.key === "Escape") reply(null);
});
byId("text").addEventListener("input", (event) => {
  if (event.data === "@" && byId("people").hidden) offerPeople();
  else if (!byId("text").value.endsWith("@")) byId("people").hidden = true;
});
byId("text").addEventListener("paste", (event) => {
  const file = event.clipboardData?.files[0];
  if (file) event.preventDefault();
  upload(file);
});
byId("at").addEventListener("click", offerPeople);
byId("file").addEventListener("change", async (event) => {
  await upload(event.target.files[0]);
  event.target.value = "";
});
byId("me").addEventListener("change", (event) => {
  me = event.target.value;
  chat = "";
  unread.clear();
  drawChats();
  drawMessages();
});
byId("new-group").addEventListener("click", async () => {
  const called = await ask("Name of the new group (everyone is added)");
  if (called) open((await attempt(act("group", { name: called })))?.chat_id ?? chat);
});
byId("new-person").addEventListener("click", async () => {
  const called = await ask("Name of the new person");
  if (called) me = (await attempt(act("person", { name: called })))?.open_id ?? me;
});
byId("bot-place").addEventListener("click", () => {
  attempt(act("bot", { person: me, chat, present: !currentChat().bots.length }));
});
byId("tools-toggle").addEventListener("click", (event) => {
  const tools = byId("tools");
  tools.hidden = !tools.hidden;
  event.currentTarget.setAttribute("aria-expanded", String(!tools.hidden));
});

login();
follow(update, (sentence) => {
  if (sentence) notify(sentence, "error");
});
