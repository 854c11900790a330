// Renders a subset of Lark's Markdown as nodes. Images are shown as names and never fetched.

import { h } from "./dom.js";

const INLINE =
  /(`+)(.+?)\1|\*\*(.+?)\*\*|~~(.+?)~~|\*([^\s*][^*]*)\*|(!?)\[([^\]]*)\]\(([^)\s]+)\)|<at\s+[^>]*?(?:id|user_id)=["']?([^"'>\s]+)["']?[^>]*>.*?<\/at>|<\/?(?:font|text_tag|u|b|i|strong|em)[^>]{0,80}>|<br\s*\/?>/s;

function inline(text, name) {
  const nodes = [];
  for (let rest = text; rest; ) {
    const found = INLINE.exec(rest);
    if (!found) return [...nodes, rest];
    const [all, , code, bold, gone, slanted, image, label, link, at] = found;
    nodes.push(rest.slice(0, found.index));
    rest = rest.slice(found.index + all.length);
    if (code !== undefined) nodes.push(h("code", {}, code));
    else if (bold !== undefined) nodes.push(h("b", {}, inline(bold, name)));
    else if (gone !== undefined) nodes.push(h("s", {}, inline(gone, name)));
    else if (slanted !== undefined) nodes.push(h("i", {}, inline(slanted, name)));
    else if (image) nodes.push(h("span", { class: "hint" }, `[image ${label}]`));
    else if (link !== undefined) nodes.push(anchor(link, label || link));
    else if (at !== undefined) nodes.push(h("span", { class: "at" }, `@${name(at)}`));
    else if (all.startsWith("<br")) nodes.push(h("br"));
  }
  return nodes;
}

export function anchor(link, label) {
  if (!/^https?:\/\//i.test(link)) return label;
  return h("a", { href: link, target: "_blank", rel: "noopener noreferrer", title: link }, label);
}

const cells = (line) =>
  line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());
const isRuler = (line) => line.includes("-") && line.includes("|") && /^[\s:|-]+$/.test(line);

function table(lines, name) {
  const row = (tag) => (line) => h("tr", {}, cells(line).map((cell) => h(tag, {}, inline(cell, name))));
  const head = h("thead", {}, row("th")(lines[0]));
  return h("div", { class: "wide" }, h("table", {}, head, h("tbody", {}, lines.slice(2).map(row("td")))));
}

const ITEM = /^(\s*)([-*+]|\d+[.)])\s+(.*)$/;

// Return the nodes of a text; `name` returns the name of an id.
export function markdown(text, name = (id) => id) {
  const lines = String(text ?? "").split("\n");
  const nodes = [];
  const take = (more) => {
    const taken = [];
    while (lines.length && more(lines[0])) taken.push(lines.shift());
    return taken;
  };
  while (lines.length) {
    const line = lines[0];
    const fence = /^\s*(```+|~~~+)/.exec(line);
    const heading = /^(#{1,6})\s+(.*)$/.exec(line);
    if (fence) {
      lines.shift();
      const code = take((one) => !one.trim().startsWith(fence[1]));
      lines.shift();
      nodes.push(h("pre", {}, h("code", {}, code.join("\n"))));
    } else if (heading) {
      lines.shift();
      nodes.push(h("p", { class: "heading" }, inline(heading[2], name)));
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      lines.shift();
      nodes.push(h("hr"));
    } else if (line.includes("|") && isRuler(lines[1] ?? "")) {
      nodes.push(table(take((one) => one.includes("|")), name));
    } else if (line.startsWith(">")) {
      const quoted = take((one) => one.startsWith(">")).map((one) => one.replace(/^>\s?/, ""));
      nodes.push(h("blockquote", {}, markdown(quoted.join("\n"), name)));
    } else if (ITEM.test(line)) {
      const items = take((one) => ITEM.test(one)).map((one) => ITEM.exec(one));
      const made = items.map(([, indent, mark, words]) => {
        const sign = /\d/.test(mark) ? mark : "•";
        return h("li", { class: indent ? "inner" : "" }, h("span", { class: "sign" }, sign), h("span", {}, inline(words, name)));
      });
      nodes.push(h("ul", { class: "items" }, made));
    } else {
      lines.shift();
      if (!line.trim()) continue;
      const more = take((one) => one.trim() && !/^\s*(```|~~~|#{1,6}\s|>)/.test(one) && !ITEM.test(one) && !one.includes("|"));
      nodes.push(h("p", {}, inline([line, ...more].join("\n"), name)));
    }
  }
  return nodes;
}
