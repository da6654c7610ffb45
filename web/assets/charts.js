// Small charts in SVG: lines over time, bars with a cap. Each also has a description for screen readers.

import { h, s, show } from './dom.js';
import { short } from './text.js';

const PAD = { top: 12, right: 10, bottom: 22, left: 46 };

/** A round number at or slightly above `max`. */
export function niceTop(max) {
  if (!(max > 0)) return 1;
  const size = 10 ** Math.floor(Math.log10(max));
  return [1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10].map((m) => m * size).find((m) => m >= max * (1 - 1e-9));
}

function frame(svg, top, width, height, format) {
  const inner = height - PAD.top - PAD.bottom;
  for (let i = 0; i <= 4; i += 1) {
    const y = PAD.top + (inner * i) / 4;
    svg.append(s('line', { class: i === 4 ? 'base' : 'rule', x1: PAD.left, x2: width - PAD.right, y1: y, y2: y }));
    if (i % 2 === 0) svg.append(s('text', { x: PAD.left - 7, y: y + 4, 'text-anchor': 'end' }, format(top * (1 - i / 4))));
  }
  return inner;
}

/** The powers of ten around the values: [lowest, highest], at least one decade. */
export function decades(values) {
  const all = values.filter((v) => Number.isFinite(v) && v > 0);
  if (all.length === 0) return [1, 10];
  const low = 10 ** Math.floor(Math.log10(Math.min(...all)) + 1e-9);
  return [low, Math.max(10 ** Math.ceil(Math.log10(Math.max(...all)) - 1e-9), low * 10)];
}

/** A line for each power of ten, so that one slow moment does not flatten the rest. */
function logFrame(svg, [low, high], width, height, format) {
  const inner = height - PAD.top - PAD.bottom;
  const steps = Math.round(Math.log10(high / low));
  for (let i = 0; i <= steps; i += 1) {
    const y = PAD.top + (inner * i) / steps;
    svg.append(s('line', { class: i === steps ? 'base' : 'rule', x1: PAD.left, x2: width - PAD.right, y1: y, y2: y }),
      s('text', { x: PAD.left - 7, y: y + 4, 'text-anchor': 'end' }, format(high / 10 ** i)));
  }
  return inner;
}

function axis(svg, width, height, labels) {
  labels.forEach((text, i) => {
    const anchor = i === 0 ? 'start' : i === labels.length - 1 ? 'end' : 'middle';
    const x = PAD.left + ((width - PAD.left - PAD.right) * i) / Math.max(labels.length - 1, 1);
    svg.append(s('text', { x, y: height - 5, 'text-anchor': anchor }, text));
  });
}

function legendOf(series) {
  return h('ul', { class: 'legend' }, series.map((one) => h('li', null,
    s('svg', { viewBox: '0 0 14 4', 'aria-hidden': 'true' }, s('line', { class: `line ${one.tone}-line`, x1: 0, x2: 14, y1: 2, y2: 2 })),
    one.name)));
}

/** Redraws when the available width changes, so that text keeps its size. */
function fitted(svg, height, draw) {
  let width = 0;
  new ResizeObserver(([entry]) => {
    const now = Math.max(Math.round(entry.contentRect.width), 240);
    if (now === width) return;
    width = now;
    svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
    draw(width);
  }).observe(svg);
}

/**
 * Lines over time that can be redrawn. `series`: [{ name, tone: 'a'|'b'|'c', area }];
 * draw({ times, values: [[…], …], describe }). `log`: each line of the frame is ten times the one below it.
 */
export function lineChart(title, series, { height = 210, format = short, timeText, log = false }) {
  const svg = s('svg', { class: 'chart', viewBox: `0 0 560 ${height}`, role: 'img', 'aria-label': title });
  const read = h('p', { class: 'chart-read', 'aria-hidden': 'true' });
  let width = 560;
  let last = null;
  let pointed = null;
  fitted(svg, height, (now) => {
    width = now;
    if (last) draw(last);
  });

  function readAt(index) {
    if (!last || last.times.length === 0) return;
    const at = index === null ? last.times.length - 1 : index;
    show(read, `${timeText(last.times[at])}: `, series.map((one, i) => `${one.name} ${format(last.values[i][at])}`).join(' · '));
  }

  function draw(data) {
    last = data;
    const points = data.times.length;
    const top = niceTop(Math.max(...data.values.flat().filter(Number.isFinite), 0));
    const [low, high] = decades(data.values.flat());
    svg.replaceChildren();
    const inner = log ? logFrame(svg, [low, high], width, height, format) : frame(svg, top, width, height, format);
    const share = (v) => (log ? Math.log10(v / low) / Math.log10(high / low) : v / top);
    const x = (i) => PAD.left + ((width - PAD.left - PAD.right) * i) / Math.max(points - 1, 1);
    const y = (v) => PAD.top + inner * (1 - Math.min(share(v), 1));
    series.forEach((one, n) => {
      if (points === 0) return;
      // No line where a value is missing; an isolated value is a dot.
      const path = data.values[n].map((v, i, all) => {
        if (!Number.isFinite(v)) return '';
        const at = `${x(i).toFixed(1)} ${y(v).toFixed(1)}`;
        return i > 0 && Number.isFinite(all[i - 1]) ? `L${at}` : `M${at}L${at}`;
      }).join('');
      if (one.area) svg.append(s('path', { class: `area ${one.tone}-fill`, d: `${path}L${x(points - 1)} ${y(0)}L${x(0)} ${y(0)}Z` }));
      svg.append(s('path', { class: `line ${one.tone}-line`, d: path }));
    });
    if (points > 1) axis(svg, width, height, [0, 0.5, 1].map((f) => timeText(data.times[Math.round(f * (points - 1))])));
    if (pointed !== null && pointed < points) svg.append(s('line', { class: 'hair', x1: x(pointed), x2: x(pointed), y1: PAD.top, y2: height - PAD.bottom }));
    svg.setAttribute('aria-label', `${title}. ${data.describe ?? ''}`);
    readAt(pointed !== null && pointed < points ? pointed : null);
  }

  function point(event) {
    if (!last || last.times.length === 0) return;
    const box = svg.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * width;
    const share = (at - PAD.left) / (width - PAD.left - PAD.right);
    pointed = Math.max(0, Math.min(last.times.length - 1, Math.round(share * (last.times.length - 1))));
    draw(last);
  }
  svg.addEventListener('pointermove', point);
  svg.addEventListener('pointerleave', () => {
    pointed = null;
    if (last) draw(last);
  });
  return { element: h('div', null, legendOf(series), svg, read), draw };
}

/** Bars with the cap as a line. `bars`: [{ label, value, extra }]; `extra` is drawn on top, greyed out. */
export function barChart(title, bars, { cap, capText, height = 280, describe, labels }) {
  const svg = s('svg', { class: 'chart', viewBox: `0 0 1060 ${height}`, role: 'img', 'aria-label': `${title}. ${describe ?? ''}` });
  const read = h('p', { class: 'chart-read', 'aria-hidden': 'true' });
  const most = Math.max(cap ?? 0, ...bars.map((b) => b.value + (b.extra ?? 0)));
  const top = niceTop(most * 1.08);
  let width = 1060;
  let step = 1;
  function draw() {
    svg.replaceChildren();
    const inner = frame(svg, top, width, height, short);
    step = (width - PAD.left - PAD.right) / Math.max(bars.length, 1);
    const gap = step > 6 ? Math.min(step * 0.22, 6) : 0;
    const scale = (v) => (inner * v) / top;
    bars.forEach((bar, i) => {
      const x = PAD.left + i * step + gap / 2;
      const thick = Math.min(Math.max(step - gap, 0.6), 64);
      const left = x + (step - gap - thick) / 2;
      const column = (from, value, tone, opacity) => value > 0 && svg.append(s('rect', {
        class: `${tone}-fill`, opacity, x: left.toFixed(2), width: thick.toFixed(2), rx: thick > 5 ? 2 : 0,
        y: (PAD.top + inner - scale(from + value)).toFixed(2), height: Math.max(scale(value), 0.8).toFixed(2),
      }));
      column(0, bar.value, 'a', 0.88);
      column(bar.value, bar.extra ?? 0, 'c', 0.6);
    });
    if (cap !== undefined) {
      const y = PAD.top + inner - scale(cap);
      svg.append(s('line', { class: 'cap', x1: PAD.left, x2: width - PAD.right, y1: y, y2: y }),
        s('text', { class: 'cap-text', x: width - PAD.right, y: y - 5, 'text-anchor': 'end' }, capText));
    }
    axis(svg, width, height, width > 500 ? labels : [labels[0], labels.at(-1)]);
  }
  draw();
  fitted(svg, height, (now) => {
    width = now;
    draw();
  });
  svg.addEventListener('pointermove', (event) => {
    const box = svg.getBoundingClientRect();
    const at = Math.floor((((event.clientX - box.left) / box.width) * width - PAD.left) / step);
    const bar = bars[at];
    show(read, bar ? `${bar.label}: ${short(bar.value)}${bar.extra ? ` and ${short(bar.extra)} carried` : ''}` : '');
  });
  return h('div', null, svg, read);
}
