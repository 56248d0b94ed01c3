"use strict";
// Everything is set as text: a name from outside stays a name.
const NOTHING = "–", NEAR = 24, DRAG = 5;
const FIGURES = JSON.parse(document.getElementById("points").textContent);
const made = (tag, kind, text) => {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  if (text !== undefined) element.textContent = text;
  return element;
};
const drawn = (tag, kind) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  element.setAttribute("class", kind);
  return element;
};
// The same digits as in the tables.
function digits(value) {
  const size = Math.abs(value);
  if (!Number.isFinite(value)) return NOTHING;
  if (size >= 1e15 || (size < 1e-4 && size > 0)) return value.toExponential(3).replace("e+", "e");
  if (Number.isInteger(value)) return value.toLocaleString("en");
  if (size < 1) return String(Number(value.toPrecision(4)));
  const places = size >= 100 ? 1 : 2;
  return value.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places });
}
const said = (axis, value) =>
  axis.names.length ? axis.names[value] ?? digits(value) : digits(value) + (axis.unit ? " " + axis.unit : "");
// Where a number is on its axis, from 0 to 1; what is not above zero is at the edge of a logarithmic one.
function part(axis, value) {
  const at = axis.log ? (value > 0 ? Math.log10(value) : axis.low) : value;
  return Math.min(1, Math.max(0, (at - axis.low) / (axis.high - axis.low)));
}

class Chart {
  constructor(element, figure) {
    this.element = element;
    this.figure = figure;
    this.plot = element.querySelector(".plot");
    this.readout = element.querySelector(".readout");
    this.hidden = new Set();
    this.at = -1;
    this.row = 0;
    element.classList.add("live");
    this.plot.classList.add("pointed");
    this.plot.tabIndex = 0;
    this.plot.setAttribute("role", "group");
    this.plot.setAttribute("aria-label", this.help());
    this.makeLegend();
    this.plot.addEventListener("pointermove", event => this.pointed(event));
    this.plot.addEventListener("pointerleave", () => this.left());
    this.plot.addEventListener("keydown", event => this.pressed(event));
    this.plot.addEventListener("blur", () => this.left());
  }
  help() { return "Arrow keys read the values."; }
  makeLegend() {
    for (const entry of this.element.querySelectorAll(".legend li")) {
      const button = made("button"), number = Number(entry.dataset.s);
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.append(...entry.childNodes);
      entry.append(button);
      button.addEventListener("click", () => {
        const show = this.hidden.delete(number);
        if (!show) this.hidden.add(number);
        button.setAttribute("aria-pressed", String(show));
        for (const group of this.plot.querySelectorAll(`g[data-s="${number}"]`)) {
          group.style.display = show ? "" : "none";
        }
        this.changed();
      });
    }
  }
  changed() { this.left(); }
  // The picture that is shown now, and its measures.
  view() {
    const svg = [...this.plot.querySelectorAll("svg")].find(svg => svg.getBoundingClientRect().width > 0);
    const [left, top, right, bottom] = svg.dataset.box.split(" ").map(Number);
    const { x, y } = this.figure;
    return {
      svg, left, top, right, bottom,
      x: value => left + part(x, value) * (right - left),
      y: value => bottom - part(y, value) * (bottom - top),
    };
  }
  // A pointer's place in the picture's own pixels.
  place(event, view) {
    const box = view.svg.getBoundingClientRect(), zoom = view.svg.viewBox.baseVal.width / box.width;
    return { x: (event.clientX - box.left) * zoom, y: (event.clientY - box.top) * zoom };
  }
  overlay(view, ...shapes) {
    for (const old of this.plot.querySelectorAll(".over")) old.remove();
    if (!shapes.length) return;
    const group = drawn("g", "over");
    group.append(...shapes);
    view.svg.append(group);
  }
  say(...parts) {
    this.readout.replaceChildren(...parts.flatMap(({ key, text }) => {
      const span = made("span", "", "");
      if (key !== undefined) {
        const swatch = this.element.querySelector(`.legend li[data-s="${key}"] svg`);
        if (swatch) span.append(swatch.cloneNode(true));
      }
      span.append(text);
      return [span, " "];
    }));
  }
  left() {
    this.overlay(null);
    this.readout.replaceChildren();
  }
}

// Lines, bars and rows: what every series is at one place of the x axis.
class Ruler extends Chart {
  places() {
    if (!this.known) {
      const all = this.figure.series.flatMap(series => series.x).filter(x => x !== null);
      this.known = [...new Set(all)].sort((a, b) => a - b);
    }
    return this.known;
  }
  pointed(event) {
    const view = this.view(), { x, y } = this.place(event, view), known = this.places();
    if (!known.length) return;
    let best = 0;
    known.forEach((value, at) => {
      if (Math.abs(view.x(value) - x) < Math.abs(view.x(known[best]) - x)) best = at;
    });
    const rows = this.figure.series.length;
    this.row = Math.min(rows - 1, Math.max(0, Math.floor((y - view.top) / (view.bottom - view.top) * rows)));
    this.show(best);
  }
  pressed(event) {
    const known = this.places(), last = known.length - 1;
    const page = Math.max(1, Math.round(last / 10));
    const to = { ArrowLeft: this.at - 1, ArrowRight: this.at + 1, Home: 0, End: last,
      PageUp: this.at - page, PageDown: this.at + page }[event.key];
    if (event.key === "Escape") this.left();
    const turn = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const is_heat = this.figure.kind === "heat";
    if (to === undefined && !(turn && is_heat)) return;
    event.preventDefault();
    if (turn) this.row = Math.min(this.figure.series.length - 1, Math.max(0, this.row + turn));
    if (known.length) this.show(Math.min(last, Math.max(0, to ?? this.at)));
  }
  // The point of `series` that is nearest to `x`.
  nearest(series, x) {
    let best = -1;
    series.x.forEach((value, at) => {
      if (value === null || series.y[at] === null) return;
      if (best < 0 || Math.abs(value - x) < Math.abs(series.x[best] - x)) best = at;
    });
    return [series.x[best], series.y[best]];
  }
  // A bound has few points and holds between them.
  between(series, x) {
    const to = series.x.findIndex(value => value !== null && value >= x);
    if (to < 0 || series.y[to] === null) return undefined;
    if (series.x[to] === x) return series.y[to];
    if (to === 0 || series.y[to - 1] === null) return undefined;
    const [x0, x1, y0, y1] = [series.x[to - 1], series.x[to], series.y[to - 1], series.y[to]];
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
  }
  show(at) {
    this.at = at;
    const view = this.view(), { kind, x, y, series } = this.figure, here = this.places()[at];
    const right = view.x(here), parts = [{ text: said(x, here) }], shapes = [drawn("path", "cross")];
    const [from, to] = kind === "heat" ? this.edges(view) : [view.top, view.bottom];
    shapes[0].setAttribute("d", `M${right} ${from}V${to}`);
    series.forEach((one, number) => {
      if (this.hidden.has(number) || (kind === "heat" && number !== this.row)) return;
      const [at_x, at_y] = one.guide ? [here, this.between(one, here)] : this.nearest(one, here);
      if (at_y === undefined || Math.abs(view.x(at_x) - right) > NEAR) return;
      parts.push({ key: number, text: `${one.name || y.label}: ${said(y, at_y)}` });
      if (kind !== "lines") return;
      const mark = drawn("circle", "mark");
      mark.setAttribute("cx", view.x(at_x));
      mark.setAttribute("cy", view.y(at_y));
      mark.setAttribute("r", 4);
      shapes.push(mark);
    });
    this.overlay(view, ...shapes);
    this.say(...parts);
  }
  edges(view) {
    const height = (view.bottom - view.top) / this.figure.series.length;
    return [view.top + this.row * height, view.top + (this.row + 1) * height];
  }
  help() {
    return super.help() + (this.figure.kind === "heat" ? " Up and down change the row." : "");
  }
}

// Points: each is itself, and can be selected.
class Cloud extends Chart {
  constructor(element, figure) {
    super(element, figure);
    this.points = [];
    figure.series.forEach((series, number) => {
      if (series.guide) return;
      series.x.forEach((x, at) => {
        const y = series.y[at], note = (series.notes || [])[at] || "";
        // A front is drawn through points that are there already.
        const same = series.front && this.points.find(p => p.x === x && p.y === y);
        if (same) same.numbers.push(number);
        else this.points.push({ x, y, numbers: [number], note, row: this.points.length });
      });
    });
    this.picked = new Set();
    this.tables = [...document.querySelectorAll("table[data-of]")].filter(t => t.dataset.of === element.id);
    this.counts = [...document.querySelectorAll(".picked")].filter(p => p.dataset.of === element.id);
    this.before = this.counts.map(count => [...count.childNodes]);
    this.plot.addEventListener("pointerdown", event => this.down(event));
    this.plot.addEventListener("pointerup", event => this.up(event));
    this.plot.addEventListener("pointercancel", () => { this.from = null; });
  }
  help() { return "Arrow keys go from point to point, Enter selects, Escape clears. A pointer selects by a click or a frame."; }
  seen() {
    return this.points.filter(p => p.x !== null && p.y !== null && this.isShown(p));
  }
  isShown(point) {
    return point.numbers.some(number => !this.hidden.has(number));
  }
  pointed(event) {
    const view = this.view(), here = this.place(event, view);
    if (this.from && Math.hypot(here.x - this.from.x, here.y - this.from.y) > DRAG) {
      return this.frame(view, here);
    }
    const found = this.under(view, here);
    if (found) this.show(found); else this.rest();
  }
  under(view, here) {
    const far = p => Math.hypot(view.x(p.x) - here.x, view.y(p.y) - here.y);
    let best = null;
    for (const p of this.seen()) if (far(p) < NEAR && (!best || far(p) < far(best))) best = p;
    return best;
  }
  frame(view, here) {
    const box = drawn("rect", "field");
    const [x, y] = [Math.min(here.x, this.from.x), Math.min(here.y, this.from.y)];
    box.setAttribute("x", x);
    box.setAttribute("y", y);
    box.setAttribute("width", Math.abs(here.x - this.from.x));
    box.setAttribute("height", Math.abs(here.y - this.from.y));
    this.overlay(view, ...this.rings(view), box);
  }
  down(event) {
    if (event.button) return;
    this.from = this.place(event, this.view());
    this.plot.setPointerCapture?.(event.pointerId);
  }
  up(event) {
    if (!this.from) return;
    const view = this.view(), here = this.place(event, view), from = this.from;
    this.from = null;
    if (Math.hypot(here.x - from.x, here.y - from.y) <= DRAG) {
      const found = this.under(view, here);
      return found ? this.toggle(found) : undefined;
    }
    if (!event.shiftKey) this.picked.clear();
    const within = (value, one, other) => value >= Math.min(one, other) && value <= Math.max(one, other);
    for (const p of this.seen()) {
      if (within(view.x(p.x), here.x, from.x) && within(view.y(p.y), here.y, from.y)) this.picked.add(p.row);
    }
    this.selected();
  }
  pressed(event) {
    const axis = { ArrowLeft: "x", ArrowRight: "x", ArrowUp: "y", ArrowDown: "y" }[event.key];
    if (event.key === "Escape") return this.clear();
    const chosen = this.points[this.at];
    if ((event.key === "Enter" || event.key === " ") && chosen) {
      event.preventDefault();
      return this.toggle(chosen);
    }
    if (!axis) return;
    event.preventDefault();
    const order = this.seen().sort((a, b) => a[axis] - b[axis] || a.row - b.row);
    if (!order.length) return;
    const up = event.key === "ArrowRight" || event.key === "ArrowUp";
    const now = order.indexOf(chosen), next = now < 0 ? 0 : now + (up ? 1 : -1);
    this.show(order[Math.min(order.length - 1, Math.max(0, next))]);
  }
  show(point) {
    this.at = point.row;
    const view = this.view(), { x, y, series } = this.figure, ring = drawn("circle", "cross");
    ring.setAttribute("cx", view.x(point.x));
    ring.setAttribute("cy", view.y(point.y));
    ring.setAttribute("r", 8);
    this.overlay(view, ...this.rings(view), ring);
    const parts = [{ text: `${x.label}: ${said(x, point.x)}` }, { text: `${y.label}: ${said(y, point.y)}` }];
    for (const number of [...point.numbers].reverse()) {
      if (series[number].name) parts.unshift({ key: number, text: series[number].name });
    }
    if (point.note) parts.unshift({ text: point.note });
    if (this.picked.has(point.row)) parts.push({ text: "selected" });
    this.say(...parts);
  }
  rings(view) {
    if (!this.picked.size) return [];
    const d = this.points.filter(p => this.picked.has(p.row) && this.isShown(p))
      .map(p => `M${view.x(p.x) - 6} ${view.y(p.y)}a6 6 0 1 0 12 0a6 6 0 1 0-12 0`).join("");
    const rings = drawn("path", "picks");
    rings.setAttribute("d", d);
    return [rings];
  }
  toggle(point) {
    if (!this.picked.delete(point.row)) this.picked.add(point.row);
    this.selected();
    this.show(point);
  }
  clear() {
    this.picked.clear();
    this.selected();
    this.readout.replaceChildren();
  }
  selected() {
    this.rest();
    for (const table of this.tables) {
      [...table.tBodies[0].rows].forEach((row, number) => {
        row.hidden = this.picked.size > 0 && !this.picked.has(number);
      });
    }
    this.counts.forEach((count, number) => {
      if (!this.picked.size) return count.replaceChildren(...this.before[number]);
      const button = made("button", "", "Show all");
      button.type = "button";
      button.addEventListener("click", () => { this.clear(); this.plot.focus(); });
      const rows = `${digits(this.picked.size)} of ${digits(this.points.length)} selected. `;
      count.replaceChildren(rows, button);
    });
  }
  rest() {
    this.overlay(this.view(), ...this.rings(this.view()));
    this.readout.replaceChildren();
  }
  changed() { this.rest(); }
  left() { this.rest(); }
}

for (const element of document.querySelectorAll("figure[id]")) {
  const figure = FIGURES[element.id];
  if (figure) new (figure.kind === "points" ? Cloud : Ruler)(element, figure);
}

const theme = document.getElementById("theme"), root = document.documentElement;
theme.hidden = false;
theme.addEventListener("click", () => {
  const next = { undefined: "light", light: "dark", dark: undefined }[root.dataset.theme];
  if (next) root.dataset.theme = next; else delete root.dataset.theme;
  theme.textContent = "Colours: " + (next || "as the system");
});
