// Notify: what was sent, what was refused, what waits, and what could not be delivered.

import { get } from '../api.js';
import { lineChart } from '../charts.js';
import { h, show } from '../dom.js';
import { card, empty, failure, figure, figures, keepFresh, pageHead } from '../parts.js';
import { count, time } from '../text.js';

const KEPT = 300;

export function render(root, { signal }) {
  const boxes = { sends: figure('Sent'), limited: figure('Refused (429)'), unavailable: figure('Unavailable (503)'), waiting: figure('Under way'), queue: figure('In the queue'), deadLetters: figure('Dead letters') };
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
    for (const [key, box] of Object.entries(boxes)) box.set(now[key] === null ? '–' : count(now[key]), null, key === 'deadLetters' && now[key] > 0);
    seen.push({ t: Date.now(), sends: now.sends, limited: now.limited });
    if (seen.length > KEPT) seen.shift();
    const per = (field) => seen.slice(1).map((one, i) => Math.max(0, ((one[field] - seen[i][field]) * 1000) / (one.t - seen[i].t)));
    chart.draw({ times: seen.slice(1).map((one) => one.t), values: [per('sends'), per('limited')], describe: `${count(now.sends)} sent in all.` });
    const waits = now.queue === null ? 'The queue is the broker’s, and counted there. ' : '';
    show(dead, empty(now.deadLetters > 0 ? `${count(now.deadLetters)} messages could not be delivered; the log of “weir sender” says why.` : `${waits}No dead letters.`));
  });
}
