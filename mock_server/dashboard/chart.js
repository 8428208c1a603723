// The throughput chart: two lines over the last minutes, drawn as SVG.

const NS = "http://www.w3.org/2000/svg";
const MARGIN = { left: 46, right: 46, top: 10, bottom: 22 };
const KEPT = 240;

function draw(name, attributes, text) {
  const node = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

export function short(number) {
  if (number >= 1e6) return (number / 1e6).toFixed(number >= 1e7 ? 0 : 1) + "M";
  if (number >= 1e4) return (number / 1e3).toFixed(0) + "k";
  if (number >= 100 || Number.isInteger(number)) return Math.round(number).toLocaleString("en");
  return number.toFixed(1);
}

function nice(top) {
  const power = 10 ** Math.floor(Math.log10(top || 1));
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((value) => value >= top) || 1;
}

export class Chart {
  constructor(box) {
    this.box = box;
    this.points = [];
    this.svg = draw("svg", { role: "img", "aria-label": "rows and calls a second over time" });
    box.append(this.svg);
    new ResizeObserver(() => this.render()).observe(box);
  }

  clear() {
    this.points = [];
    this.render();
  }

  add(at, rows, calls) {
    this.points.push({ at, rows, calls });
    if (this.points.length > KEPT) this.points.shift();
    this.render();
  }

  render() {
    const width = this.box.clientWidth, height = this.box.clientHeight;
    const inner = { w: width - MARGIN.left - MARGIN.right, h: height - MARGIN.top - MARGIN.bottom };
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.replaceChildren();
    const rowsTop = nice(Math.max(1, ...this.points.map((point) => point.rows)));
    const callsTop = nice(Math.max(1, ...this.points.map((point) => point.calls)));
    for (let step = 0; step <= 4; step++) {
      const y = MARGIN.top + inner.h * (1 - step / 4);
      this.svg.append(draw("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y, y2: y }));
      this.svg.append(draw("text", { x: MARGIN.left - 8, y: y + 4, "text-anchor": "end" }, short((rowsTop * step) / 4)));
      this.svg.append(draw("text", { x: width - MARGIN.right + 8, y: y + 4 }, short((callsTop * step) / 4)));
    }
    if (this.points.length < 2) return;
    const first = this.points[0].at, last = this.points.at(-1).at;
    const x = (at) => MARGIN.left + inner.w * ((at - first) / (last - first || 1));
    const y = (value, top) => MARGIN.top + inner.h * (1 - value / top);
    const line = (key, top) => this.points.map((point, place) => `${place ? "L" : "M"}${x(point.at).toFixed(1)} ${y(point[key], top).toFixed(1)}`).join("");
    const rows = line("rows", rowsTop), base = MARGIN.top + inner.h;
    this.svg.append(draw("path", { class: "area", d: `${rows}L${x(last)} ${base}L${x(first)} ${base}Z` }));
    this.svg.append(draw("path", { class: "rows", d: rows }), draw("path", { class: "calls", d: line("calls", callsTop) }));
    for (const share of [0, 0.5, 1]) {
      const at = first + (last - first) * share;
      const anchor = ["start", "middle", "end"][share * 2];
      this.svg.append(draw("text", { x: x(at), y: height - 5, "text-anchor": anchor }, `${at.toFixed(0)} s`));
    }
  }
}
