// Renders a subset of Markdown as Lark's cards do. An image is one that the simulator stores.

import { h, image as picture } from "./dom.js";

// A run opens or closes emphasis by the rule of CommonMark, which knows no Chinese signs.
const SIGN = "\\p{P}\\p{S}";
const opens = (run) => `(?:(?<![^\\s${SIGN}])${run}(?!\\s)|${run}(?![\\s${SIGN}]))`;
const closes = (run) => `(?:(?<!\\s)${run}(?![^\\s${SIGN}])|(?<![\\s${SIGN}])${run})`;
const within = (run, end = run) => `${opens(run)}((?:\\\\.|[^\\\\])+?)${closes(end)}`;
const STAR = "(?<!\\*)\\*(?!\\*)";

const INLINE = new RegExp(
  [
    "\\\\([!-\\/:-@\\[-`\\{-~])|&#(\\d{1,7});",
    "(?<!`)(`+)(?!`)(.+?)(?<!`)\\3(?!`)",
    `${within("\\*\\*", "\\*\\*(?!\\*)")}|${within("~~")}|${within(STAR)}`,
    "(!?)\\[([^\\]]*)\\]\\(([^)\\s]+)\\)",
    "<at\\s+[^>]*?(?:id|user_id)=[\"']?([^\"'>\\s]+)[\"']?[^>]*>.*?<\\/at>",
    "<local_datetime\\s([^>]{1,200})>\\s*<\\/local_datetime>",
    "<\\/?(?:font|text_tag|u|b|i|strong|em)[^>]{0,80}>|<br\\s*\\/?>",
  ].join("|"),
  "gsu",
);

function inline(text, name) {
  const nodes = [];
  let done = 0;
  for (const found of text.matchAll(INLINE)) {
    const [all, escaped, entity, , code, bold, gone, slanted, image, label, link, at, moment] = found;
    nodes.push(text.slice(done, found.index));
    done = found.index + all.length;
    if (escaped !== undefined) nodes.push(escaped);
    else if (entity !== undefined) nodes.push(Number(entity) < 0x110000 ? String.fromCodePoint(Number(entity)) : all);
    else if (code !== undefined) nodes.push(h("code", {}, code));
    else if (bold !== undefined) nodes.push(h("b", {}, inline(bold, name)));
    else if (gone !== undefined) nodes.push(h("s", {}, inline(gone, name)));
    else if (slanted !== undefined) nodes.push(h("i", {}, inline(slanted, name)));
    else if (image) nodes.push(link.startsWith("img_") ? picture(link, label) : h("span", { class: "hint" }, `[image ${label}]`));
    else if (link !== undefined) nodes.push(anchor(link, label ? inline(label, name) : link));
    else if (at !== undefined) nodes.push(h("span", { class: "at" }, `@${name(at)}`));
    else if (moment !== undefined) nodes.push(localTime(moment));
    else if (all.startsWith("<br")) nodes.push(h("br"));
  }
  return [...nodes, text.slice(done)];
}

const FORMS = {
  date_num: { year: "numeric", month: "2-digit", day: "2-digit" },
  date_short: { month: "short", day: "numeric" },
  date: { year: "numeric", month: "long", day: "numeric" },
  week: { weekday: "long" },
  week_short: { weekday: "short" },
  time: { hour: "2-digit", minute: "2-digit" },
  time_sec: { hour: "2-digit", minute: "2-digit", second: "2-digit" },
  timezone: { timeZoneName: "short" },
};

// A time in the zone of the reader.
function localTime(attributes) {
  const value = (name) => new RegExp(`${name}=["']?([\\w]+)`).exec(attributes)?.[1];
  const at = new Date(Number(value("millisecond") ?? NaN));
  const form = FORMS[value("format_type")] ?? FORMS.date_num;
  return Number.isNaN(at.getTime()) ? "" : h("time", { dateTime: at.toISOString() }, at.toLocaleString([], form));
}

// A cell has no line breaks.
const cellText = (text, name) => inline(text.replace(/<(?=br\s*\/?>)/gi, "&#60;"), name);

export function anchor(link, label) {
  if (!/^https?:\/\//i.test(link)) return label;
  return h("a", { href: link, target: "_blank", rel: "noopener noreferrer", title: link }, label);
}

const cells = (line) =>
  line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());
const isRuler = (line) => line.includes("-") && line.includes("|") && /^[\s:|-]+$/.test(line);

function table(lines, name) {
  const row = (tag) => (line) => h("tr", {}, cells(line).map((cell) => h(tag, {}, cellText(cell, name))));
  const head = h("thead", {}, row("th")(lines[0]));
  return h("div", { class: "wide" }, h("table", {}, head, h("tbody", {}, lines.slice(2).map(row("td")))));
}

const ITEM = /^(\s*)([-*+]|\d+[.)])\s+(.*)$/;

// Return the nodes of a text; `name` returns the name of an id.
export function markdown(text, name = (id) => id) {
  const lines = String(text ?? "").split("\n");
  const nodes = [];
  let open = false; // a table needs an empty line after a paragraph
  const take = (more) => {
    const taken = [];
    while (lines.length && more(lines[0])) taken.push(lines.shift());
    return taken;
  };
  while (lines.length) {
    const line = lines[0];
    const glued = open;
    open = false;
    const fence = /^(```+|~~~+)/.exec(line);
    const heading = /^(#{1,6})\s+(.*)$/.exec(line);
    if (fence) {
      lines.shift();
      const code = take((one) => !one.trim().startsWith(fence[1]));
      lines.shift();
      nodes.push(h("pre", {}, h("code", {}, code.join("\n"))));
    } else if (heading) {
      lines.shift();
      nodes.push(h("p", { class: `heading h${heading[1].length}` }, inline(heading[2], name)));
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      lines.shift();
      nodes.push(h("hr"));
    } else if (!glued && line.includes("|") && isRuler(lines[1] ?? "")) {
      nodes.push(table(take((one) => one.includes("|")), name));
    } else if (line.startsWith(">")) {
      const quoted = take((one) => one.startsWith(">")).map((one) => one.replace(/^>\s?/, ""));
      nodes.push(h("blockquote", {}, markdown(quoted.join("\n"), name)));
    } else if (ITEM.test(line)) {
      const items = take((one) => ITEM.test(one)).map((one) => ITEM.exec(one));
      const made = items.map(([, indent, mark, words]) => {
        const sign = /\d/.test(mark) ? mark : "•";
        const level = Math.floor(indent.replace(/\t/g, "    ").length / 4);
        return h("li", { class: `level${Math.min(level, 8)}` }, h("span", { class: "sign" }, sign), h("span", {}, inline(words, name)));
      });
      nodes.push(h("ul", { class: "items" }, made));
    } else {
      lines.shift();
      if (!line.trim()) continue;
      const more = take((one) => one.trim() && !/^(```|~~~|#{1,6}\s|>)/.test(one) && !ITEM.test(one));
      open = true;
      nodes.push(h("p", {}, inline([line, ...more].join("\n"), name)));
    }
  }
  return nodes;
}
