// One tensor in detail: its numbers, its worst elements, and how error and noise are distributed over its elements.

const PER_DECADE = 4;
const LOWEST = -12;

function facts(rows) {
  const list = make("dl", { class: "facts" });
  for (const [key, value] of rows) {
    if (value !== "" && value !== null && value !== undefined) list.append(make("div", {}, make("dt", {}, key), make("dd", {}, value)));
  }
  return list;
}

function detail(i) {
  const grid = make("div", { class: "detail-grid" });
  grid.append(make("h3", {}, make("code", { class: "name" }, nameOf(i)), badge(found.verdict[i])));
  const histogram = page.histograms[i];
  grid.append(
    facts([
      ["stage", `${stageOf(i)} (${partOf(i)})`],
      ["layer", moduleOf(i)],
      ["shape", shapeOf(i)],
      ["ratio", shown(found.ratio[i])],
      ["error", shown(found.error[i])],
      ["noise", shown(found.noise[i])],
      ["allowed", shown(found.allowed[i])],
      ["why", whyOf(i)],
      ["factor", histogram && histogram.factor !== undefined ? `MindSpore is nearest to ${histogram.factor} × torch, cosine ${histogram.cosine}` : ""],
    ]),
  );
  grid.append(histogram ? distribution(i, histogram) : make("p", { class: "muted" }, noHistogram(i)));
  return grid;
}

function noHistogram(i) {
  if (!Object.keys(page.histograms).length) return "";
  if (found.error[i] === null) return "Nothing to draw: the two sides could not be compared element by element.";
  return "The distribution of the error is kept for failed tensors and the worst of each stage.";
}

function distribution(i, histogram) {
  const figure = make("div", { class: "histogram" });
  const sampled = histogram.elements < histogram.of ? `${grouped(histogram.elements)} of ${grouped(histogram.of)}` : grouped(histogram.of);
  figure.append(make("p", { class: "muted" }, `Distance from torch float64 of ${sampled} elements, in units of the tensor's root mean square`));
  figure.append(bars(i, histogram));
  const zeros = [`MindSpore: ${grouped(histogram.error.zeros)} exactly equal`];
  if (histogram.noise) zeros.push(`torch float32: ${grouped(histogram.noise.zeros)}`);
  figure.append(
    make("div", { class: "legend" },
      make("span", {}, swatch(found.verdict[i] === "p" ? "bars error pass" : "bars error"), "MindSpore's error"),
      histogram.noise ? make("span", {}, swatch("bars noise"), "torch's noise") : null,
      make("span", {}, zeros.join(", "))),
  );
  if (histogram.worst.length) {
    const body = make("tbody");
    for (const [index, expected, got] of histogram.worst) {
      body.append(make("tr", {}, make("td", {}, `[${index.join(", ")}]`), make("td", { class: "n" }, String(expected)), make("td", { class: "n" }, String(got))));
    }
    const head = make("tr", {}, make("th", { scope: "col" }, "farthest"), make("th", { scope: "col", class: "n" }, "torch float64"), make("th", { scope: "col", class: "n" }, "MindSpore"));
    figure.append(make("table", {}, make("thead", {}, head), body));
  }
  return figure;
}

const swatch = (kind) => draw("svg", { viewBox: "0 0 16 12", "aria-hidden": "true" }, draw("rect", { class: kind, x: 1, y: 2, width: 13, height: 8 }));

function bars(i, histogram) {
  const narrow = innerWidth < 700;
  const width = narrow ? 320 : 560, height = narrow ? 150 : 170, left = 8, bottom = 22, top = 8;
  const series = [["noise", histogram.noise], ["error", histogram.error]].filter(([, s]) => s && s.counts.length);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Histogram of ${nameOf(i)}` });
  if (!series.length) return svg;
  const first = Math.floor((Math.min(...series.map(([, s]) => s.first)) - 1) / PER_DECADE) * PER_DECADE;
  const last = Math.ceil((Math.max(...series.map(([, s]) => s.first + s.counts.length)) + 1) / PER_DECADE) * PER_DECADE;
  const tallest = Math.max(...series.flatMap(([, s]) => s.counts));
  const step = (width - 2 * left) / (last - first);
  for (let bin = first; bin <= last; bin += PER_DECADE) {
    const x = left + (bin - first) * step;
    svg.append(draw("line", { class: "grid", x1: x, x2: x, y1: top, y2: height - bottom }));
    if ((last - first) / PER_DECADE <= (narrow ? 5 : 9) || (bin / PER_DECADE) % (narrow ? 3 : 2) === 0) {
      svg.append(draw("text", { x, y: height - 6, "text-anchor": bin === first ? "start" : bin === last ? "end" : "middle" }, power(LOWEST + bin / PER_DECADE)));
    }
  }
  for (const [kind, s] of series) {
    const passed = kind === "error" && found.verdict[i] === "p" ? " pass" : "";
    let path = "";
    s.counts.forEach((n, k) => {
      // the square root keeps bins of a few elements visible beside those of thousands
      const tall = Math.sqrt(n / tallest) * (height - bottom - top);
      if (n) path += `M${(left + (s.first + k - first) * step).toFixed(1)} ${height - bottom}v${-tall.toFixed(1)}h${step.toFixed(2)}v${tall.toFixed(1)}z`;
    });
    svg.append(draw("path", { class: `bars ${kind}${passed}`, d: path }));
  }
  svg.append(draw("line", { class: "grid", x1: left, x2: width - left, y1: height - bottom, y2: height - bottom }));
  return svg;
}
