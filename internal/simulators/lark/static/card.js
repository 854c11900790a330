// Draws a card and reports clicks: the path to the element and the values entered.

import { h, image } from "./dom.js";
import { anchor, markdown } from "./markdown.js";

const words = (text) => (typeof text === "string" ? text : (text?.content ?? ""));
const callback = (part) =>
  part.value !== undefined || (part.behaviors ?? []).some((one) => one?.type === "callback");
const link = (part) =>
  (part.behaviors ?? []).find((one) => one?.type === "open_url")?.default_url ?? part.url ?? part.multi_url?.url;

// `press(click)` receives the body of the control API's click; `name(id)` returns a person's name.
export function drawCard(card, press, name) {
  const draw = { press, name, form: null };
  const path = Array.isArray(card.elements) ? ["elements"] : ["body", "elements"];
  const elements = card.elements ?? card.body?.elements ?? Object.values(card.i18n_elements ?? {})[0] ?? [];
  const title = words(card.header?.title);
  const head = title && h("div", { class: `head ${card.header.template ?? ""}` }, h("b", {}, title), h("span", {}, words(card.header.subtitle)));
  return h("div", { class: "card" }, head || null, h("div", { class: "body" }, all(elements, path, draw)));
}

const all = (list, path, draw) =>
  (Array.isArray(list) ? list : []).map((part, at) => one(part, [...path, at], draw));

function one(part, path, draw) {
  const make = PARTS[part?.tag];
  if (make) return make(part, path, draw);
  return h("p", { class: "hint" }, `[${part?.tag ?? "?"}: the simulator does not draw this]`);
}

const texts = (part, path, draw) => h("div", { class: part.text_size === "notation" ? "md hint" : "md" }, markdown(words(part), draw.name));
const plain = (part) => h("p", { class: part.text_size === "notation" ? "plain hint" : "plain" }, words(part));

function text(part, draw) {
  if (!part) return null;
  return part.tag === "plain_text" ? plain(part) : texts(part, [], draw);
}

function entry(part, path, draw, field, read) {
  field.disabled = part.disabled === true;
  if (part.name && draw.form) draw.form.fields.push({ name: part.name, required: part.required, field, read });
  if (!draw.form) field.addEventListener("change", () => draw.press({ path, ...press(part, read()) }));
  return h("label", { class: "field" }, words(part.label) || null, field);
}

function press(part, value) {
  if (part.tag === "input") return { input_value: value };
  if (part.tag === "checker") return { checked: value };
  return Array.isArray(value) ? { options: value } : { option: value };
}

function select(part, path, draw) {
  const many = part.tag.startsWith("multi_");
  const start = many ? (part.selected_values ?? []) : [part.initial_option];
  const options = (part.options ?? []).map((one) =>
    h("option", { value: one.value, selected: start.includes(one.value) }, words(one.text)));
  const first = many ? null : h("option", { value: "" }, words(part.placeholder) || "…");
  const field = h("select", { multiple: many }, first, options);
  const read = () => (many ? [...field.selectedOptions].map((one) => one.value) : field.value);
  return entry(part, path, draw, field, read);
}

const dated = (type) => (part, path, draw) => {
  const field = h("input", { type, value: part.initial_date ?? part.initial_time ?? part.initial_datetime ?? "" });
  return entry(part, path, draw, field, () => field.value);
};

function input(part, path, draw) {
  const props = { placeholder: words(part.placeholder), value: part.default_value ?? "", maxLength: part.max_length ?? 1000 };
  const field = part.input_type === "multiline_text" ? h("textarea", { rows: 3, ...props }) : h("input", props);
  return entry(part, path, draw, field, () => field.value);
}

function checker(part, path, draw) {
  const field = h("input", { type: "checkbox", checked: part.checked === true });
  const label = entry(part, path, draw, field, () => field.checked);
  label.append(words(part.text));
  label.classList.add("inline");
  return label;
}

function button(part, path, draw) {
  const label = words(part.text) || part.name || "·";
  const url = link(part);
  if (url && !callback(part)) return h("span", { class: "button" }, anchor(url, label));
  const action = part.form_action_type ?? { form_submit: "submit", form_reset: "reset" }[part.action_type];
  const click = () => {
    const asked = part.confirm && words(part.confirm.title ?? part.confirm.text);
    if (asked && !confirm(asked)) return;
    if (action === "reset") return draw.form?.reset();
    const entered = action === "submit" && draw.form ? draw.form.read() : {};
    if (entered) draw.press({ path, ...(action === "submit" ? { form_value: entered } : {}) });
  };
  const kind = /primary/.test(part.type ?? "") ? "primary" : /danger/.test(part.type ?? "") ? "danger" : "";
  return h("button", { type: "button", class: kind, disabled: part.disabled === true, onclick: click }, label);
}

function form(part, path, draw) {
  const fields = [];
  const node = h("form", { class: "form", onsubmit: (event) => event.preventDefault() });
  const read = () => {
    const missing = fields.find(({ required, read }) => required && !String(read()).length);
    if (missing) return missing.field.focus();
    return Object.fromEntries(fields.map(({ name, read }) => [name, read()]));
  };
  node.append(...all(part.elements, [...path, "elements"], { ...draw, form: { fields, read, reset: () => node.reset() } }));
  return node;
}

function columns(part, path, draw) {
  const made = (part.columns ?? []).map((column, at) =>
    h("div", { class: column.width === "auto" ? "" : "grow" }, all(column.elements, [...path, "columns", at, "elements"], draw)));
  return h("div", { class: "columns" }, made);
}

function table(part, path, draw) {
  const names = part.columns ?? [];
  const cell = (value) => (value !== null && typeof value === "object" ? JSON.stringify(value) : String(value ?? ""));
  const head = h("tr", {}, names.map((one) => h("th", {}, one.display_name ?? one.name)));
  const rows = (part.rows ?? []).map((row) => h("tr", {}, names.map((one) => h("td", {}, markdown(cell(row[one.name]), draw.name)))));
  return h("div", { class: "wide" }, h("table", {}, h("thead", {}, head), h("tbody", {}, rows)));
}

function panel(part, path, draw) {
  const title = h("summary", {}, markdown(words(part.header?.title), draw.name));
  return h("details", { open: part.expanded === true }, title, all(part.elements, [...path, "elements"], draw));
}

function overflow(part, path, draw) {
  const options = (part.options ?? []).map((one) => h("option", { value: one.value }, words(one.text)));
  const field = h("select", { "aria-label": "More", onchange: () => draw.press({ path, option: field.value }) }, h("option", { value: "" }, "…"), options);
  return field;
}

function div(part, path, draw) {
  const fields = (part.fields ?? []).map((one) => h("div", { class: one.is_short ? "grow" : "line" }, text(one.text, draw)));
  const extra = part.extra ? one(part.extra, [...path, "extra"], draw) : null;
  return h("div", { class: "columns" }, h("div", { class: "grow" }, text(part.text, draw), fields.length ? h("div", { class: "columns" }, fields) : null), extra);
}

function container(part, path, draw) {
  const inner = all(part.elements, [...path, "elements"], draw);
  const click = (event) => event.target.closest("button,input,select,a,textarea") || draw.press({ path });
  return h("div", { class: "container", tabIndex: 0, onclick: callback(part) ? click : null }, inner);
}

const PARTS = {
  markdown: texts,
  lark_md: texts,
  plain_text: plain,
  div,
  hr: () => h("hr"),
  img: (part) => image(part.img_key, words(part.alt) || "image"),
  button,
  form,
  input,
  checker,
  table,
  overflow,
  column_set: columns,
  collapsible_panel: panel,
  interactive_container: container,
  select_static: select,
  multi_select_static: select,
  select_person: select,
  multi_select_person: select,
  date_picker: dated("date"),
  picker_time: dated("time"),
  picker_datetime: dated("datetime-local"),
  action: (part, path, draw) => h("div", { class: "row" }, all(part.actions, [...path, "actions"], draw)),
  note: (part, path, draw) => h("div", { class: "hint" }, all(part.elements, [...path, "elements"], draw)),
};
