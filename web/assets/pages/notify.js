// Notify: what was sent, what was refused, what waits, and what could not be delivered.

import { get } from '../api.js';
import { lineChart } from '../charts.js';
import { h, show } from '../dom.js';
import { name } from '../name.js';
import { card, empty, failure, figure, figures, keepFresh, pageHead, table } from '../parts.js';
import { count, moment, time } from '../text.js';

const KEPT = 300;
const numberOf = (value) => (Array.isArray(value) ? value.length : typeof value === 'object' && value ? value.count ?? value.size ?? value.total : value);

export function render(root, { signal }) {
  const boxes = { sends: figure('Sent'), limited: figure('Refused (429)'), unavailable: figure('Unavailable (503)'), queue: figure('In the queue'), deadLetters: figure('Dead letters') };
  const chart = lineChart('Sends since this page was opened', [{ name: 'sent', tone: 'a', area: true }, { name: 'refused', tone: 'b', area: true }], { timeText: time });
  const dead = h('div');
  const body = h('div', { class: 'grid' }, figures(...Object.values(boxes)), card('Since this page was opened', { note: 'per second' }, chart.element), card('Dead letters', {}, dead));
  root.append(pageHead('Notify', 'Messages to users, under their caps.'), body);
  const seen = [];

  keepFresh(signal, 2000, async () => {
    let now;
    try {
      now = await get('/admin/notify', signal);
    } catch (error) {
      if (!signal.aborted && error.missing) show(body, failure(error, 'The notification gateway'));
      throw error;
    }
    for (const [key, box] of Object.entries(boxes)) box.set(count(numberOf(now[key])), null, key === 'deadLetters' && numberOf(now[key]) > 0);
    seen.push({ t: Date.now(), sends: numberOf(now.sends), limited: numberOf(now.limited) });
    if (seen.length > KEPT) seen.shift();
    const per = (field) => seen.slice(1).map((one, i) => Math.max(0, ((one[field] - seen[i][field]) * 1000) / (one.t - seen[i].t)));
    chart.draw({ times: seen.slice(1).map((one) => one.t), values: [per('sends'), per('limited')], describe: `${count(numberOf(now.sends))} sent in all.` });
    const letters = [now.deadLetters, now.deadLetters?.items, now.deadLetters?.latest].find(Array.isArray) ?? [];
    if (letters.length === 0) {
      show(dead, empty(numberOf(now.deadLetters) > 0 ? `${count(numberOf(now.deadLetters))} messages could not be delivered. “weir notify” lists them.` : 'Every message found its way.'));
    } else {
      show(dead, table('Messages that could not be delivered', [
        { title: 'User', head: true, cell: (m) => name(String(m.userId ?? m.key ?? '–'), 60) },
        { title: 'When', cell: (m) => moment(m.at ?? m.timestamp) },
        { title: 'Why', cell: (m) => name(String(m.error ?? m.reason ?? '–'), 160) },
      ], letters.slice(0, 50)));
    }
  });
}
