// Draws a message: sender, content, card, reactions and actions.

import { drawCard } from "./card.js";
import { download, h, image } from "./dom.js";
import { anchor, markdown } from "./markdown.js";

const EMOJI = { THUMBSUP: "👍", OK: "👌", HEART: "❤️", DONE: "✅", Typing: "⌨️", OnIt: "🫡", LAUGH: "😄", CLAP: "👏", CrossMark: "❌", THINKING: "🤔", EYES: "👀" };
const OFFERED = ["THUMBSUP", "OK", "HEART", "DONE"];
const time = (ms) => new Date(Number(ms)).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });

function content(message) {
  try {
    return JSON.parse(message.body.content);
  } catch {
    return {};
  }
}

// Return a one-line summary of a message, for quotes.
export function gist(message) {
  if (!message) return "a message";
  if (message.deleted) return "a recalled message";
  const value = content(message);
  const shown = message.msg_type === "text" ? named(value.text ?? "", message) : `[${message.msg_type}]`;
  return `${message.sender_name}: ${shown.slice(0, 60)}`;
}

function named(text, message) {
  const keys = [...message.mentions].sort((a, b) => b.key.length - a.key.length);
  return keys.reduce((done, one) => done.replaceAll(one.key, `@${one.name}`), text).replaceAll("@_all", "@everyone");
}

function post(value, message) {
  const part = (one) => {
    if (one.tag === "a") return anchor(one.href ?? "", one.text ?? one.href);
    if (one.tag === "at") return h("span", { class: "at" }, `@${one.user_name ?? named(one.user_id ?? "", message)}`);
    if (one.tag === "img") return image(one.image_key, "image");
    if (one.tag === "md") return h("div", {}, markdown(one.text));
    if (one.tag === "code_block") return h("pre", {}, h("code", {}, one.text));
    if (one.tag === "hr") return h("hr");
    return one.text ?? `[${one.tag}]`;
  };
  const rows = (value.content ?? []).map((row) => h("div", {}, row.map(part)));
  return [value.title ? h("p", { class: "heading" }, value.title) : null, rows];
}

function card(message, handlers) {
  try {
    return drawCard(message.card, (press) => handlers.press(message, press), handlers.name);
  } catch (error) {
    return h("p", { class: "hint" }, `[a card that the simulator cannot draw: ${error.message}]`);
  }
}

function body(message, handlers) {
  if (message.deleted) return h("p", { class: "hint" }, "This message was recalled");
  if (message.card) return card(message, handlers);
  const value = content(message);
  switch (message.msg_type) {
    case "text":
      return h("p", { class: "words" }, named(value.text ?? "", message));
    case "post":
      return h("div", { class: "md" }, post(value, message));
    case "image":
      return image(value.image_key, "image");
    case "file":
    case "audio":
    case "media":
      return download(value.file_key, value.file_name ?? "file");
    default:
      return h("p", { class: "hint" }, `[${message.msg_type}]`);
  }
}

function actionBar(message, handlers) {
  if (message.deleted) return null;
  const button = (label, title, act) => h("button", { type: "button", title, "aria-label": title, onclick: () => act(message) }, label);
  return h("div", { class: "actions" },
    OFFERED.map((one) => button(EMOJI[one], one, () => handlers.react(message, one))),
    button("↩", "Reply", handlers.reply),
    button("≡", "Reply in thread", handlers.thread),
    message.sender.id === handlers.me ? button("✕", "Recall", handlers.recall) : null,
    message.sender.sender_type === "user" ? button("⟳", "Redeliver the event", handlers.again) : null);
}

function reactions(message, handlers) {
  return Object.entries(message.reactions).map(([emoji, who]) =>
    h("button", { type: "button", class: "reaction", title: `${emoji}: ${who.map((one) => one.name).join(", ")}`, onclick: () => handlers.react(message, emoji) },
      `${EMOJI[emoji] ?? emoji} ${who.length}`));
}

// Draw a message. `old` is its previous node: an unchanged card is kept with the values entered in it.
export function drawMessage(message, handlers, old) {
  const mine = message.sender.id === handlers.me;
  const bot = message.sender.sender_type === "app";
  const drawn = JSON.stringify([message.card, message.deleted, message.body.content, message.msg_type]);
  const main = old?.drawn === drawn ? old.main : h("div", { class: "main" }, body(message, handlers));
  const marks = [bot ? "bot" : "", message.edits ? `edited ${message.edits}×` : "", message.streaming ? "generating…" : "", message.urgent.length ? `urgent: ${message.urgent.join(", ")}` : "", message.thread_id ? "thread" : ""];
  const node = h("li", { class: `message ${mine ? "mine" : ""}`, id: message.message_id },
    h("div", { class: "who" }, h("b", {}, message.sender_name ?? "?"), marks.filter(Boolean).map((one) => h("span", { class: "mark" }, one)), h("time", {}, time(message.create_time))),
    message.parent_id ? h("a", { class: "quote", href: `#${message.parent_id}` }, gist(handlers.find(message.parent_id))) : null,
    main,
    h("div", { class: "row" }, reactions(message, handlers)),
    actionBar(message, handlers));
  node.drawn = drawn;
  node.main = main;
  return node;
}
