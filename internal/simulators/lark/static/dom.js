// Creates elements. Text is inserted as text; nothing parses HTML.

import { media } from "./net.js";

export function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else if (name in node && name !== "list") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(9).filter((child) => child !== null && child !== undefined));
  return node;
}

export const byId = (id) => document.getElementById(id);

// An image that the simulator stores.
export function image(key, alt) {
  const node = h("img", { alt });
  media(key ?? "").then((url) => (node.src = url));
  return node;
}

// A button that saves a file that the simulator stores.
export function download(key, name) {
  const save = async () => h("a", { href: await media(key ?? ""), download: name }).click();
  return h("button", { type: "button", class: "button", onclick: save }, `⤓ ${name}`);
}
