// The table of findings: sorted by any column, and drawn a hundred rows at a time, when the reader clicks for more, so
// that what is below it stays where links lead.

const CHUNK = 100;
const rank = { f: 0, n: 1, p: 2 };
const text = new Intl.Collator("en", { numeric: true });
const COLUMNS = [
  { id: "order", head: "#", title: "order of execution", kind: "n", sort: (i) => i, cell: (i) => String(i + 1) },
  { id: "stage", head: "stage", sort: (i) => found.stage[i], cell: stageOf },
  { id: "part", head: "part", sort: partOf, cell: partOf },
  { id: "name", head: "tensor", sort: nameOf, cell: (i, table) => table.name(i) },
  { id: "verdict", head: "verdict", sort: (i) => rank[found.verdict[i]], cell: (i) => badge(found.verdict[i]) },
  { id: "ratio", head: "ratio", kind: "n", down: true, sort: (i) => found.ratio[i], cell: (i) => shown(found.ratio[i]) },
  { id: "error", head: "error", kind: "n", down: true, sort: (i) => found.error[i], cell: (i) => shown(found.error[i]) },
  { id: "noise", head: "noise", kind: "n", down: true, sort: (i) => found.noise[i], cell: (i) => shown(found.noise[i]) },
  { id: "allowed", head: "allowed", kind: "n", down: true, sort: (i) => found.allowed[i], cell: (i) => shown(found.allowed[i]) },
  { id: "shape", head: "shape", sort: shapeOf, cell: shapeOf },
  { id: "why", head: "why", sort: whyOf, cell: whyOf },
];

// Numbers by size, texts by name; what is missing comes last whichever way.
function compare(a, b, down) {
  const none = (x) => x === null || x === undefined || x === "";
  if (none(a) || none(b)) return none(a) - none(b);
  const order = typeof a === "string" ? text.compare(a, b) : a < b ? -1 : a > b ? 1 : 0;
  return down ? -order : order;
}

class Table {
  constructor(table, more) {
    Object.assign(this, { table, more, rows: [], drawn: 0, by: "order", down: false, head: table.tHead.rows[0], body: table.tBodies[0] });
    more.addEventListener("click", () => this.extend());
  }

  columns() { return COLUMNS.filter((column) => column.id !== "stage" || this.stages > 1); }

  sortBy(id, down) {
    const column = COLUMNS.find((c) => c.id === id);
    this.down = down !== undefined ? down : id === this.by ? !this.down : Boolean(column.down);
    this.by = id;
    this.show(this.rows);
    this.head.querySelector("[aria-sort] button").focus({ preventScroll: true });
  }

  show(rows) {
    const key = COLUMNS.find((column) => column.id === this.by).sort;
    const keyed = rows.map((i) => [key(i), i]).sort((a, b) => compare(a[0], b[0], this.down) || a[1] - b[1]);
    this.rows = keyed.map(([, i]) => i);
    this.head.replaceChildren(...this.columns().map((column) => this.heading(column)));
    this.body.replaceChildren();
    this.drawn = 0;
    this.extend();
  }

  heading(column) {
    const sorted = column.id === this.by ? (this.down ? "descending" : "ascending") : null;
    const arrow = sorted ? (this.down ? " ↓" : " ↑") : "";
    const button = make("button", { type: "button", title: column.title, onclick: () => this.sortBy(column.id) }, column.head + arrow);
    return make("th", { scope: "col", class: this.kind(column), "aria-sort": sorted }, button);
  }

  kind(column) { return `c-${column.id} ${column.kind === "n" ? "n c-number" : ""}`; }

  extend() {
    const rows = document.createDocumentFragment();
    for (const i of this.rows.slice(this.drawn, this.drawn + CHUNK)) rows.append(this.row(i));
    this.body.append(rows);
    this.drawn = Math.min(this.rows.length, this.drawn + CHUNK);
    this.more.hidden = this.drawn >= this.rows.length;
    this.more.textContent = `Show more (${grouped(this.rows.length - this.drawn)} left)`;
  }

  row(i) {
    const row = make("tr", { class: `is-${MARKS[found.verdict[i]]}` });
    for (const column of this.columns()) {
      const labelled = column.kind === "n" && found[column.id] && found[column.id][i] !== null ? column.head : null;
      row.append(make("td", { class: this.kind(column), "data-label": labelled }, column.cell(i, this)));
    }
    return row;
  }

  name(i) {
    const cell = document.createDocumentFragment();
    const button = make("button", { type: "button", class: "open", "aria-expanded": "false", onclick: () => this.unfold(button, i) }, nameOf(i));
    cell.append(button, moduleOf(i) ? make("span", { class: "muted" }, ` ${moduleOf(i)}`) : "");
    return cell;
  }

  unfold(button, i) {
    const row = button.closest("tr"), open = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!open));
    if (open) row.nextElementSibling.remove();
    else choose(i), remember(), row.after(make("tr", { class: "detail" }, make("td", { colspan: this.columns().length }, detail(i))));
  }
}
