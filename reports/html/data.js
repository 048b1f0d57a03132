// The data of the page, and the few helpers that everything else uses. Texts only ever become text nodes.

const page = JSON.parse(document.getElementById("data").textContent);
const found = page.findings;
const count = found.verdict.length;
const number = (x) => (x === "inf" ? Infinity : x === "-inf" ? -Infinity : x);
for (const column of ["error", "noise", "allowed", "ratio"]) found[column] = found[column].map(number);

const VERDICTS = { p: "pass", f: "fail", n: "no verdict" };
const MARKS = { p: "pass", f: "fail", n: "none" };
const byId = (id) => document.getElementById(id);

const nameOf = (i) => found.names[found.name[i]];
const partOf = (i) => found.parts[found.part[i]];
const stageOf = (i) => found.stages[found.stage[i]];
const moduleOf = (i) => found.modules[found.module[i]];
const shapeOf = (i) => found.shapes[found.shape[i]];
const whyOf = (i) => found.whys[found.why[i]];

// An element with attributes and children; strings become text.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function shown(x) {
  if (x === null || x === undefined) return "";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  const size = Math.abs(x);
  if (x === 0) return "0";
  return size >= 0.01 && size < 1000 ? String(Number(x.toPrecision(3))) : x.toExponential(1).replace(/e(.)(\d)$/, "e$10$2");
}

const grouped = (n) => n.toLocaleString("en-US");
const badge = (letter, text = VERDICTS[letter]) => make("span", { class: `badge ${MARKS[letter]}` }, text);
const power = (exponent) => `1e${exponent}`.replace("1e0", "1");
