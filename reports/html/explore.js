// What is shown of the findings: a stage, a part of it, what the filter matches; plot and table follow.

const explore = { stage: null, part: "", filter: "", tensor: null, verdicts: new Set(["p", "f", "n"]) };
const panel = byId("detail");
const plot = new Plot(byId("plot"), byId("told"), (i) => {
  choose(i);
  panel.scrollIntoView({ block: "nearest" });
  remember();
});
const table = new Table(byId("findings"), byId("more"));
let started = false;
const haystack = found.name.map((_, i) => `${stageOf(i)} ${partOf(i)} ${nameOf(i)} ${moduleOf(i)} ${whyOf(i)}`.toLowerCase());

function choose(i) {
  explore.tensor = i;
  panel.replaceChildren(detail(i));
}

// The address says what is shown, so that it can be sent to somebody: #tensors&stage=update&filter=bn1&tensor=270
function remember() {
  const said = { stage: explore.stage === null ? "all" : found.stages[explore.stage], part: explore.part, filter: explore.filter, tensor: explore.tensor === null ? "" : explore.tensor + 1 };
  const words = new URLSearchParams(Object.entries(said).filter(([, value]) => value !== ""));
  history.replaceState(null, "", `#tensors&${words}`);
}

function recall() {
  const said = new URLSearchParams(location.hash.slice(1)), i = Number(said.get("tensor")) - 1;
  if (!said.has("tensors") || [...said.keys()].length === 1) return;
  setFilter(said.get("filter") || "");
  const stage = found.stages.indexOf(said.get("stage"));
  chooseStage(stage < 0 ? null : stage, said.get("part") || "");
  if (i >= 0 && i < count) choose(i);
  byId("tensors").scrollIntoView();
}

function inStage() {
  const rows = [];
  for (let i = 0; i < count; i++) if (explore.stage === null || found.stage[i] === explore.stage) rows.push(i);
  return rows;
}

function refresh() {
  const words = explore.filter.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = inStage().filter((i) => (!explore.part || partOf(i) === explore.part) && words.every((word) => haystack[i].includes(word)));
  plot.stages = table.stages = explore.stage === null ? found.stages.length : 1;
  plot.show(rows, byId("measure").value);
  const wanted = rows.filter((i) => explore.verdicts.has(found.verdict[i]));
  table.show(wanted);
  byId("count").textContent = `${grouped(wanted.length)} of ${grouped(count)} tensors`;
}

function chooseStage(stage, part = "") {
  explore.stage = stage;
  const tabs = [...document.querySelectorAll(".tabs button")];
  for (const tab of tabs) {
    const chosen = tab.value === String(stage);
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
  }
  const parts = [...new Set(inStage().map(partOf))];
  explore.part = parts.includes(part) ? part : "";
  byId("part").replaceChildren(make("option", { value: "" }, parts.length === 1 ? parts[0] : "all"), ...(parts.length > 1 ? parts.map((p) => make("option", { value: p }, p)) : []));
  byId("part").value = explore.part;
  refresh();
  if (started) remember();
}

function setFilter(words) {
  byId("filter").value = explore.filter = words;
}

function tab(stage, label) {
  const rows = [...Array(count).keys()].filter((i) => stage === null || found.stage[i] === stage);
  const failed = rows.filter((i) => found.verdict[i] === "f").length;
  const button = make("button", { type: "button", role: "tab", value: String(stage), "aria-controls": "findings", onclick: () => chooseStage(stage) }, label);
  if (failed) button.append(badge("f", String(failed)));
  return button;
}

byId("explore").hidden = false;
document.querySelector(".tabs").append(...found.stages.map((name, k) => tab(k, name)), tab(null, "all stages"));
document.querySelector(".tabs").addEventListener("keydown", (event) => {
  const tabs = [...event.currentTarget.children], step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
  next.focus();
  next.click();
});
byId("part").addEventListener("change", (event) => { explore.part = event.target.value; refresh(); remember(); });
let waiting = 0;
byId("filter").addEventListener("input", (event) => {
  explore.filter = event.target.value;
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(() => { refresh(); remember(); });
});
byId("measure").addEventListener("change", refresh);
for (const box of document.querySelectorAll("#explore input[type=checkbox]")) {
  box.addEventListener("change", () => { explore.verdicts[box.checked ? "add" : "delete"](box.value); refresh(); });
}
byId("sort").append(...COLUMNS.map((column) => make("option", { value: column.id }, column.title || column.head)));
byId("sort").addEventListener("change", (event) => table.sortBy(event.target.value));
for (const link of document.querySelectorAll("a[data-stage]")) {
  link.addEventListener("click", (event) => {
    event.preventDefault(); // the address is that of the stage
    setFilter("");
    chooseStage(found.stages.indexOf(link.dataset.stage));
    byId("tensors").scrollIntoView();
  });
}
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest("input, select, textarea")) {
    event.preventDefault();
    byId("filter").focus();
  }
});
chooseStage(page.first === null ? found.stages.indexOf("forward") : found.stage[page.first]);
if (page.first !== null) choose(page.first);
recall();
started = true;
addEventListener("hashchange", recall);
