// Slots: how full each window is, under its cap, and where a bulk feed would land.

import { get } from '../api.js';
import { barChart } from '../charts.js';
import { field, h, select, show } from '../dom.js';
import { name } from '../name.js';
import { card, empty, failure, figure, figures, keepFresh, message, pageHead, table } from '../parts.js';
import { count, moment, plainName, span, time, toDate, zone } from '../text.js';

const SHOWN = 120;
const FRESH = 5000;

/** PT1H30M4.5S → milliseconds. */
export function durationMs(text) {
  const found = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?)?$/.exec(text ?? '');
  if (!found) return NaN;
  const [, d = 0, h1 = 0, m = 0, s1 = 0] = found;
  return (Number(d) * 86400 + Number(h1) * 3600 + Number(m) * 60 + Number(s1)) * 1000;
}

/** Windows without a row are empty: fills the gaps so that the axis is linear in time. */
export function fillGaps(windows, size, most = SHOWN) {
  if (windows.length === 0 || !(size > 0)) return [];
  const rows = new Map(windows.map((w) => [toDate(w.windowStart).getTime(), w]));
  const first = toDate(windows[0].windowStart).getTime();
  const last = Math.max(...[...rows.keys()].filter((at) => at < first + most * size));
  const all = [];
  for (let at = first; at <= last; at += size) {
    const row = rows.get(at);
    all.push({ start: at, count: row?.count ?? 0, carried: row?.carried ?? 0 });
  }
  return all;
}

/** The format of a datetime-local field. */
const local = (date) => new Date(date.getTime() - date.getTimezoneOffset() * 60000).toISOString().slice(0, 19);

/** The chart, its time span as text, and the same data as a table. */
function loadChart(config, bars) {
  const most = Math.max(...bars.map((b) => b.value + b.extra));
  const ends = [0, Math.floor((bars.length - 1) / 2), bars.length - 1];
  const day = bars.length * durationMs(config.windowSize) < 86400000;
  const words = `${bars.length} ${bars.length === 1 ? 'window' : 'windows'}; the fullest holds ${count(most)} of ${count(config.maxPerWindow)}.`;
  return [
    h('p', { class: 'muted small' }, `${bars[0].label} to ${bars.at(-1).label}: ${words}`),
    barChart('Events per window', bars, {
      cap: config.maxPerWindow, capText: `cap ${count(config.maxPerWindow)}`, labels: [...new Set(ends)].map((i) => (day ? bars[i].label.split(', ')[1] : bars[i].label)), describe: words,
    }),
    h('details', null, h('summary', null, 'As a table'), table('Events per window', [
      { title: 'Window', head: true, cell: (b) => b.label },
      { title: 'Events', num: true, cell: (b) => count(b.value + b.extra) },
      { title: 'Of the cap', num: true, cell: (b) => `${Math.round((100 * (b.value + b.extra)) / config.maxPerWindow)} %` },
    ], bars, { stack: false })),
  ];
}

export function render(root, { signal }) {
  const body = h('div', null, empty('Loading…'));
  let shown;  // the config whose execution is shown, and where
  root.append(pageHead('Slots', `Events get a time in a window that still has room. No window ever holds more than its cap. Times are in ${zone}.`), body);

  function forecastCard(config) {
    const when = h('input', { type: 'datetime-local', step: 1, value: local(new Date()), required: true });
    const events = h('input', { type: 'number', min: 1, step: 1, value: '10000', inputmode: 'numeric', required: true });
    const answer = h('div', { 'aria-live': 'polite' });
    const ask = async (event) => {
      event.preventDefault();
      const requested = new Date(when.value);
      if (Number.isNaN(requested.getTime()) || !(Number(events.value) >= 1)) {
        show(answer, message('bad', 'Enter a time and a number of events.'));
        return;
      }
      try {
        const query = new URLSearchParams({ config: config.configName, requestedTime: requested.toISOString(), count: String(Math.floor(Number(events.value))) });
        const f = await get(`/admin/rate-limit/forecast?${query}`, signal);
        const boxes = ['Last event', 'Takes', 'Windows used', 'Without a slot'].map(figure);
        boxes[0].set(time(f.finishedBy), new Date(f.finishedBy).toLocaleDateString('en-GB', { day: 'numeric', month: 'short' }));
        boxes[1].set(span(new Date(f.finishedBy) - requested));
        boxes[2].set(count(f.windows));
        boxes[3].set(count(f.unplaced), null, f.unplaced > 0);
        show(answer, figures(...boxes), h('p', { class: 'muted small' }, `From ${moment(f.firstWindow)} to the window of ${moment(f.lastWindow)}, if no other events are added. Nothing was assigned.`));
      } catch (error) {
        show(answer, message('bad', error.message));
      }
    };
    return card('Forecast a bulk feed', {}, h('form', { class: 'toolbar', novalidate: true, onsubmit: ask },
      h('div', { class: 'grow' }, field('Starting at', when)), h('div', { class: 'grow' }, field('Events', events)),
      h('button', { class: 'primary', type: 'submit' }, 'Forecast')), answer);
  }

  async function execution(config, box) {
    try {
      const all = (await get('/admin/rate-limit/backlog', signal)).configs;
      const now = all.find((b) => b.configName === config.configName);
      if (!now) return show(box, empty('Nothing has been executed yet.'));
      const late = now.oldestDue ? toDate(now.now) - toDate(now.oldestDue) : 0;
      const boxes = ['Due', 'Late', 'Scheduled later', 'In this window', 'Claimed', 'Catching up takes', 'Dead letters'].map(figure);
      boxes[0].set(count(now.due) + (now.dueIsMore ? ' or more' : ''));
      boxes[1].set(late > 0 ? span(late) : 'no', null, late > 60000);
      boxes[2].set(count(now.scheduledLater));
      boxes[3].set(`${count(now.grantedInWindow)} of ${count(now.maxPerWindow)}`);
      boxes[4].set(count(now.claimed));
      boxes[5].set(now.catchUpMs === undefined ? 'unknown' : now.catchUpMs > 0 ? span(now.catchUpMs) : '–');
      boxes[6].set(count(now.failed), null, now.failed > 0);
      show(box, h('div', { class: 'narrow-figures' }, figures(...boxes)));
    } catch (error) {
      if (!signal.aborted) show(box, failure(error, 'The backlog'));
      throw error;
    }
  }

  /** The next windows that are not empty. Windows with only cancelled events are, and there may be many. */
  async function windowsFrom(config, start) {
    for (let from = start; ;) {
      const { windows } = await get(`/admin/rate-limit/windows?${new URLSearchParams({ config: config.configName, from: new Date(from).toISOString(), limit: String(SHOWN) })}`, signal);
      const busy = windows.filter((w) => w.count + (w.carried ?? 0) > 0);
      if (busy.length > 0 || windows.length < SHOWN) return busy;
      from = toDate(windows.at(-1).windowStart).getTime() + durationMs(config.windowSize);
    }
  }

  /** The windows from a given time on that are not empty; a feed may be for a distant day. */
  function loadCard(config, box) {
    const size = durationMs(config.windowSize);
    const from = h('input', { type: 'datetime-local', step: 1, required: true });
    const later = h('button', { type: 'button', hidden: true }, 'Later events');
    const chart = h('div', { 'aria-live': 'polite' });
    let next;  // the start of the first non-empty window after those shown
    const draw = async (start) => {
      from.value = local(new Date(start));
      try {
        const bars = fillGaps(await windowsFrom(config, start), size).map((w) => ({ start: w.start, label: moment(w.start), value: w.count, extra: w.carried }));
        later.hidden = true;
        if (bars.length === 0) return show(chart, empty('There are no events at this time or later.'));
        show(chart, ...loadChart(config, bars));
        [next] = await windowsFrom(config, bars.at(-1).start + size);
        later.hidden = next === undefined;
      } catch (error) {
        if (!signal.aborted) show(chart, failure(error, 'The load'));
      }
    };
    later.addEventListener('click', () => draw(toDate(next.windowStart).getTime()));
    const ask = (event) => {
      event.preventDefault();
      const start = new Date(from.value).getTime();
      if (Number.isNaN(start)) return show(chart, message('bad', 'Enter a time.'));
      return draw(start);
    };
    show(box, h('form', { class: 'toolbar', novalidate: true, onsubmit: ask }, h('div', { class: 'grow' }, field('From', from)), h('button', { type: 'submit' }, 'Show'), later), chart);
    draw(Date.now() - 5 * size);
  }

  function showConfig(config, box) {
    const load = h('div');
    const executed = h('div', null, empty('Loading…'));
    shown = [config, executed];
    execution(...shown).catch(() => {});  // the failure is shown on the page
    show(box, h('div', { class: 'grid' }, card('Execution', { note: config.calendar ? `${config.calendar.zone}, ${config.calendar.open} to ${config.calendar.cutOff}` : 'no calendar: around the clock' }, executed), card('Load per window', { note: `${span(durationMs(config.windowSize))} each, at most ${count(config.maxPerWindow)}` }, load), forecastCard(config)));
    loadCard(config, load);
  }

  async function start() {
    let configs;
    try {
      configs = (await get('/admin/rate-limit/config', signal)).configs;
    } catch (error) {
      if (!signal.aborted) show(body, failure(error, 'The slot scheduler'));
      return;
    }
    if (configs.length === 0) {
      show(body, h('div', { class: 'card' }, h('p', { class: 'empty' }, 'There is no slot config yet. Create one: ', h('code', null, 'weir slots config set default --window 4s --max 100'))));
      return;
    }
    const box = h('div');
    const choice = select(configs.map((c, i) => [String(i), plainName(c.configName, 60)]));
    choice.addEventListener('change', () => showConfig(configs[Number(choice.value)], box));
    show(body, configs.length > 1 ? h('div', { class: 'toolbar' }, h('div', { class: 'grow choice' }, field('Config', choice))) : h('p', { class: 'toolbar' }, 'Config ', name(configs[0].configName)), box);
    showConfig(configs[0], box);
    keepFresh(signal, FRESH, () => execution(...shown));
  }
  start();
}
