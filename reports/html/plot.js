// Error against noise in the order of execution, on a logarithmic scale; one path a kind of mark, so that thousands of
// tensors stay quick.

const SHAPES = {
  p: (x, y) => `M${x} ${y}h0`,
  f: (x, y) => `M${x - 3.5} ${y - 3.5}l7 7m0 -7l-7 7`,
  n: (x, y) => `M${x - 3} ${y - 3}h6v6h-6z`,
};

class Plot {
  constructor(box, told, chosen) {
    Object.assign(this, { box, told, chosen, rows: [], at: -1, measure: "error" });
    box.addEventListener("pointermove", (event) => this.point(event));
    box.addEventListener("pointerleave", () => this.leave());
    box.addEventListener("click", (event) => { this.point(event); this.choose(); });
    box.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.width !== box.clientWidth && this.show(this.rows)).observe(box);
  }

  show(rows, measure = this.measure) {
    Object.assign(this, { rows, measure, at: -1, width: this.box.clientWidth, height: this.box.clientWidth < 600 ? 260 : 320 });
    this.left = 46;
    this.right = this.width - 12;
    this.top = 26;
    this.bottom = this.height - 34;
    const svg = draw("svg", { viewBox: `0 0 ${this.width} ${this.height}`, height: this.height, "aria-hidden": "true" });
    this.box.replaceChildren(svg);
    if (!rows.length || this.width < 80) {
      svg.append(draw("text", { x: this.width / 2, y: this.height / 2, "text-anchor": "middle" }, "no tensors"));
      return;
    }
    this.scale();
    this.axes(svg);
    this.marks(svg);
    this.here = draw("circle", { class: "here", r: 7, visibility: "hidden" });
    svg.append(this.here);
    this.tip = make("div", { class: "tip", hidden: true });
    this.box.append(this.tip, this.legend());
  }

  // Powers of ten that hold every finite, non-zero value; zeros and infinities get a line of their own.
  scale() {
    const columns = this.measure === "ratio" ? [found.ratio] : [found.error, found.noise, found.allowed];
    let low = Infinity, high = -Infinity;
    for (const i of this.rows) {
      for (const column of columns) {
        const value = column[i];
        if (value > 0 && Number.isFinite(value)) {
          low = Math.min(low, value);
          high = Math.max(high, value);
        }
      }
    }
    if (this.measure === "ratio") [low, high] = [Math.min(low, 0.1), Math.max(high, 10)];
    this.low = low === Infinity ? -8 : Math.floor(Math.log10(low) - 0.05);
    this.high = Math.max(high === -Infinity ? 0 : Math.ceil(Math.log10(high) + 0.05), this.low + 1);
    this.step = (this.right - this.left) / this.rows.length;
  }

  x(k) { return this.left + (k + 0.5) * this.step; }

  y(value) {
    if (value === null || value === undefined || value === Infinity) return this.top - 12;
    if (!(value > 0)) return this.bottom + 9;
    return this.bottom - ((Math.log10(value) - this.low) / (this.high - this.low)) * (this.bottom - this.top);
  }

  axes(svg) {
    const every = Math.ceil((this.high - this.low) / 9);
    for (let exponent = this.low; exponent <= this.high; exponent += every) {
      const y = this.y(10 ** exponent);
      svg.append(draw("line", { class: "grid", x1: this.left, x2: this.right, y1: y, y2: y }));
      svg.append(draw("text", { x: this.left - 6, y: y + 4, "text-anchor": "end" }, power(exponent)));
    }
    if (this.measure === "ratio") {
      const y = this.y(page.ratio);
      svg.append(draw("line", { class: "limit", x1: this.left, x2: this.right, y1: y, y2: y }));
    }
    let start = 0, free = 0;
    for (let k = 1; k <= this.rows.length; k++) {
      if (k < this.rows.length && this.part(k) === this.part(start)) continue;
      const from = this.left + start * this.step, wide = (k - start) * this.step;
      if (start) svg.append(draw("line", { class: "split", x1: from, x2: from, y1: this.top, y2: this.bottom }));
      const text = this.part(start);
      if (from >= free && wide > 34) {
        const fits = Math.max(3, Math.floor(wide / 6.2));
        svg.append(draw("text", { x: from + 4, y: this.height - 5 }, text.length > fits ? `${text.slice(0, fits - 1)}…` : text));
        free = from + Math.min(text.length, fits) * 6.2;
      }
      start = k;
    }
  }

  part(k) {
    const i = this.rows[k];
    return this.stages > 1 ? stageOf(i) : partOf(i);
  }

  value(i) { return this.measure === "ratio" ? found.ratio[i] : found.error[i]; }

  marks(svg) {
    const paths = { allowed: "", noise: "", p: "", n: "", f: "" };
    const half = Math.max(1, Math.min(4, this.step / 2));
    this.rows.forEach((i, k) => {
      const x = Number(this.x(k).toFixed(1));
      if (this.measure === "error") {
        if (found.noise[i] > 0) paths.noise += `M${x - half} ${this.y(found.noise[i]).toFixed(1)}h${2 * half}`;
        if (found.allowed[i] > 0) paths.allowed += `M${x - half} ${this.y(found.allowed[i]).toFixed(1)}h${2 * half}`;
      }
      const value = this.value(i);
      if (value === null && found.verdict[i] === "p") return; // judged by equality
      paths[found.verdict[i]] += SHAPES[found.verdict[i]](x, Number(this.y(value).toFixed(1)));
    });
    for (const [kind, path] of Object.entries(paths)) svg.append(draw("path", { class: `marks ${MARKS[kind] || kind}`, d: path }));
  }

  legend() {
    const item = (kind, path, text) => make("span", {}, draw("svg", { viewBox: "0 0 16 12", "aria-hidden": "true" }, draw("path", { class: `marks ${kind}`, d: path })), text);
    const items = [item("pass", SHAPES.p(8, 6), "passed"), item("fail", SHAPES.f(8, 6), "failed"), item("none", SHAPES.n(8, 6), "no verdict")];
    if (this.measure === "error") items.push(item("noise", "M2 6h12", "torch's noise"), item("allowed", "M2 6h12", "allowed"));
    const edge = this.measure === "error" ? "Above the top line: not comparable. Below the bottom line: exactly equal." : `Dashed: ${page.ratio}, above which a tensor fails.`;
    return make("div", { class: "legend" }, ...items, make("span", {}, `${edge} Click a mark to see its tensor.`));
  }

  point(event) {
    if (!this.rows.length || !this.tip) return;
    const box = this.box.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    const near = Math.round((x - this.left) / this.step - 0.5), reach = Math.ceil(12 / this.step) + 1;
    let best = -1, least = Infinity;
    for (let k = Math.max(0, near - reach); k <= Math.min(this.rows.length - 1, near + reach); k++) {
      const away = Math.abs(this.x(k) - x) + Math.abs(this.y(this.value(this.rows[k])) - y) / 4;
      if (away < least) [best, least] = [k, away];
    }
    if (best >= 0) this.mark(best);
  }

  mark(k) {
    this.at = k;
    const i = this.rows[k], x = this.x(k), y = this.y(this.value(i));
    this.here.setAttribute("cx", x);
    this.here.setAttribute("cy", y);
    this.here.setAttribute("visibility", "visible");
    const numbers = [["ratio", found.ratio[i]], ["error", found.error[i]], ["noise", found.noise[i]]].filter(([, v]) => v !== null);
    const text = `${VERDICTS[found.verdict[i]]}${numbers.map(([key, v]) => `, ${key} ${shown(v)}`).join("")}`;
    this.tip.replaceChildren(make("b", {}, nameOf(i)), make("br"), `${stageOf(i)} (${partOf(i)}) ${moduleOf(i)}`, make("br"), text);
    this.tip.hidden = false;
    const wide = this.tip.offsetWidth, tall = this.tip.offsetHeight;
    this.tip.style.left = `${Math.max(4, Math.min(x + 12, this.width - wide - 4))}px`;
    this.tip.style.top = `${y + 14 + tall > this.height ? Math.max(4, y - tall - 14) : y + 14}px`;
    return text;
  }

  leave() {
    if (!this.tip || document.activeElement === this.box) return;
    this.tip.hidden = true;
    this.here.setAttribute("visibility", "hidden");
  }

  choose() {
    if (this.at >= 0) this.chosen(this.rows[this.at]);
  }

  key(event) {
    const last = this.rows.length - 1;
    const to = { ArrowRight: this.at + 1, ArrowLeft: this.at - 1, Home: 0, End: last }[event.key];
    if (to !== undefined && last >= 0) {
      const text = this.mark(Math.max(0, Math.min(last, to)));
      this.told.textContent = `${nameOf(this.rows[this.at])}: ${text}`;
    } else if (event.key === "Enter") this.choose();
    else return;
    event.preventDefault();
  }
}
