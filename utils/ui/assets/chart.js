// A chart of curves over steps: a fixed colour for each series, a pale line as measured with a bold smoothed one, dots where
// points are few, marks for checkpoints, a crosshair with the values, and zoom by dragging (a double click shows all again).
const SPACE = { left: 52, right: 16, top: 12, bottom: 28 }, HEIGHT = 250, FEW = 40;
const view = { group: 0, range: null, drag: null };
const make = (name, attributes = {}, ...children) => {
  const isDrawn = ["svg", "path", "line", "circle", "rect", "text"].includes(name);
  const node = isDrawn ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};
const short = (value) => value === undefined ? "–"
  : Math.abs(value) >= 1000 || value === 0 ? value.toFixed(0)
  : Math.abs(value) < 0.001 ? value.toExponential(1) : String(Number(value.toFixed(Math.abs(value) < 10 ? 3 : 1)));
const smoothed = (points) => {
  const weight = Math.min(0.95, 1 - 4 / Math.max(4, points.length));
  let sum = 0, total = 0;
  return points.map(([x, y]) => {
    [sum, total] = [sum * weight + y, total * weight + 1];
    return [x, sum / total];
  });
};
const ticks = (low, high, count, least = 0) => {
  const rough = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(least, [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough));
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.max(0, Math.floor(high / step + 1e-9) - first + 1) }, (_, index) => (first + index) * step);
};
const color = (index) => `var(--series-${index % 5 + 1})`;

function draw() {
  const value = props.value;
  element.replaceChildren();
  element.classList.toggle("chart", Boolean(value));
  if (!value) return;
  const group = value.groups[view.group] ?? value.groups[0];
  const nav = make("nav", { class: "segments" });
  value.groups.forEach(({ title }, index) => {
    const button = make("button", { type: "button", "aria-pressed": value.groups[index] === group }, title);
    button.onclick = () => { Object.assign(view, { group: index, range: null }); draw(); };
    nav.append(button);
  });
  const key = make("p", { class: "key" });
  const width = Math.max(280, element.clientWidth - 32);
  const svg = make("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": group.title });
  element.append(make("header", {}, nav, key), svg);

  const all = group.series.flatMap(({ points }) => points);
  const whole = [Math.min(...all.map(([x]) => x)), Math.max(...all.map(([x]) => x))];
  let [first, last] = view.range ?? whole;
  if (first === last) [first, last] = [first - 1, last + 1];
  const series = group.series.map(({ name, points, is_raw }, index) => {
    const isDotted = points.length <= FEW, curve = is_raw && !isDotted ? smoothed(points) : points;
    return { name, points, curve, isDotted, color: color(index), isPale: curve !== points };
  });
  const inside = ([x]) => x >= first && x <= last;
  const ys = series.flatMap(({ points, curve }) => [...curve, ...(points.length < 400 ? points : [])].filter(inside).map(([, y]) => y));
  let [low, high] = ys.length ? [Math.min(...ys), Math.max(...ys)] : [0, 1];
  const margin = (high - low) * 0.08 || Math.abs(high) * 0.1 || 1;
  [low, high] = [low - margin, high + margin];
  const right = width - SPACE.right, floor = HEIGHT - SPACE.bottom;
  const toX = (x) => SPACE.left + (x - first) / (last - first) * (right - SPACE.left);
  const toY = (y) => floor - (y - low) / (high - low) * (floor - SPACE.top);
  const path = (points) => points.filter(inside).map(([x, y], index) => `${index ? "L" : "M"}${toX(x).toFixed(1)} ${toY(y).toFixed(1)}`).join("");

  for (const y of ticks(low, high, 4)) {
    svg.append(make("line", { class: "grid", x1: SPACE.left, x2: right, y1: toY(y), y2: toY(y) }),
      make("text", { x: SPACE.left - 8, y: toY(y) + 4, "text-anchor": "end" }, short(y)));
  }
  for (const x of ticks(first, last, Math.min(8, width / 90), 1)) svg.append(make("text", { x: toX(x), y: HEIGHT - 8, "text-anchor": "middle" }, short(x)));
  for (const x of value.marks.filter((step) => step >= first && step <= last)) {
    svg.append(make("path", { class: "mark", d: `M${toX(x)} ${floor}l-5 8h10z` }, make("title", {}, `${value.step} ${x}`)));
  }
  for (const one of series) {
    if (one.isPale) svg.append(make("path", { class: "raw", d: path(one.points), stroke: one.color }));
    svg.append(make("path", { class: "curve", d: path(one.curve), stroke: one.color }));
    if (one.isDotted) for (const [x, y] of one.points.filter(inside)) svg.append(make("circle", { cx: toX(x), cy: toY(y), r: 4, fill: one.color }));
  }
  const cross = make("line", { class: "cross", y1: SPACE.top, y2: floor, visibility: "hidden" });
  const zone = make("rect", { class: "zone", y: SPACE.top, height: floor - SPACE.top, width: 0 });
  svg.append(zone, cross);

  const nearest = (points, x) => points.reduce((best, point) => Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best);
  const legend = (at) => key.replaceChildren(
    make("span", {}, `${value.step} ${short(at)}`),
    ...value.marks.slice(0, 1).map(() => make("span", {}, `▲ ${value.mark}`)),
    ...series.map((one) => {
      const dot = make("i", { style: `background: ${one.color}` });
      return make("span", {}, dot, `${one.name} ${short(nearest(one.curve, at)[1])}`);
    }));
  legend(last);
  const stepAt = ({ clientX }) => {
    const box = svg.getBoundingClientRect(), share = ((clientX - box.left) / box.width * width - SPACE.left) / (right - SPACE.left);
    return first + Math.min(1, Math.max(0, share)) * (last - first);
  };
  svg.onpointermove = (event) => {
    const x = nearest(all, stepAt(event))[0];
    for (const edge of ["x1", "x2"]) cross.setAttribute(edge, toX(x));
    cross.setAttribute("visibility", "visible");
    legend(x);
    if (view.drag === null) return;
    const [from, to] = [view.drag, stepAt(event)].sort((one, other) => one - other);
    zone.setAttribute("x", toX(from));
    zone.setAttribute("width", toX(to) - toX(from));
  };
  svg.onpointerleave = () => { cross.setAttribute("visibility", "hidden"); legend(last); };
  svg.onpointerdown = (event) => { view.drag = stepAt(event); svg.setPointerCapture(event.pointerId); };
  svg.onpointerup = (event) => {
    const [from, to] = [view.drag, stepAt(event)].sort((one, other) => one - other);
    view.drag = null;
    if ((to - from) / (last - first) > 0.03) { view.range = [from, to]; draw(); }
  };
  svg.ondblclick = () => { view.range = null; draw(); };
}

watch("value", () => { if (view.drag === null) draw(); });
new ResizeObserver(() => { if (view.width !== element.clientWidth) { view.width = element.clientWidth; draw(); } }).observe(element);
draw();
