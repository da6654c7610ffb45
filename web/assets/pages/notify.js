// Notify: messages sent, refused and waiting, and those that could not be delivered, to be replayed or dropped.

import { get, post } from '../api.js';
import { lineChart } from '../charts.js';
import { field, h, show } from '../dom.js';
import { name } from '../name.js';
import { attempt, button, card, changeButton, confirm, dialog, empty, failure, figure, figures, keepFresh, pageHead, table } from '../parts.js';
import { count, moment, plainName, span, time } from '../text.js';

const KEPT = 300;
const LETTERS = 50;
const TEXT = 16384;

/** One dead letter with its whole content. */
async function lookAt(eventId, signal) {
  let content;
  try {
    const one = await get(`/admin/notify/dead/${encodeURIComponent(eventId)}`, signal);
    const facts = [['User', name(one.userId || '–', 256)], ['Channel', name(one.channel || '–', 32)], ['Recipient', name(one.recipient || '–', 320)], ['Error', name(one.error, 500)],
      [one.message === undefined ? 'Not a valid event' : 'Text', name(one.message ?? one.payload, TEXT)]];
    content = h('dl', { class: 'facts' }, facts.map(([title, value]) => h('div', null, h('dt', null, title), h('dd', null, value))));
  } catch (error) {
    content = failure(error, 'The dead letter');
  }
  await dialog(`Message ${plainName(eventId, 60)}`, (close) => [content, h('div', { class: 'buttons' }, button('Close', () => close(), { autofocus: true }))]);
}

/** The dead letters, oldest first. `load` reloads them. */
function deadLetters(signal) {
  const element = h('div', null, empty('Loading…'));

  async function act(verb, choice, question, danger) {
    if (question && !await confirm(question, ['The dead letter is deleted, and the message ends as DROPPED.'], 'Drop', { danger })) return;
    let done = 0;
    const told = await attempt(async () => {
      const answer = await post(`/admin/notify/dead/${verb}`, choice);
      done = answer.replayed ?? answer.dropped ?? 0;
    }, verb === 'replay' ? 'Put back into the queue.' : 'Dropped.');
    if (told || done > 0) load();
  }

  async function load() {
    let letters;
    try {
      letters = (await get(`/admin/notify/dead?limit=${LETTERS}`, signal)).deadLetters;
    } catch (error) {
      if (!signal.aborted) show(element, failure(error, 'The list of dead letters'));
      return;
    }
    if (letters.length === 0) return show(element, empty('No dead letters.'));
    show(element, h('div', { class: 'buttons' }, changeButton('POST /admin/notify/dead/replay', 'Replay all', () => act('replay', { all: true }), { class: 'small' })),
      table('Dead letters, oldest first', [
        { title: 'Message', head: true, cell: (letter) => name(letter.eventId, 40) },
        { title: 'User', cell: (letter) => name(letter.userId || '–', 40) },
        { title: 'Tries', num: true, cell: (letter) => count(letter.attempts) },
        { title: 'Failed', cell: (letter) => moment(letter.failedAt) },
        { title: 'Why', cell: (letter) => name(letter.error, 80) },
        { title: 'Actions', actions: true, cell: (letter) => [
          button('View', () => lookAt(letter.eventId, signal), { class: 'small', 'aria-label': `View ${plainName(letter.eventId, 40)}` }),
          changeButton('POST /admin/notify/dead/replay', 'Replay', () => act('replay', { eventIds: [letter.eventId] }), { class: 'small', 'aria-label': `Replay ${plainName(letter.eventId, 40)}` }),
          changeButton('POST /admin/notify/dead/drop', 'Drop', () => act('drop', { eventIds: [letter.eventId] }, 'Drop this message?', true), { class: 'small', 'aria-label': `Drop ${plainName(letter.eventId, 40)}` })] },
      ], letters), letters.length === LETTERS && h('p', { class: 'muted small' }, `Only the first ${LETTERS} are shown; “weir notify dead list” lists all.`));
  }
  return { element, load };
}

/** The states of a user's messages, or of one message. */
function messages(signal) {
  const answer = h('div', { 'aria-live': 'polite' });
  const user = h('input', { type: 'search', autocomplete: 'off', spellcheck: 'false', placeholder: '42' });
  const event = h('input', { type: 'search', autocomplete: 'off', spellcheck: 'false', placeholder: 'Its eventId' });

  async function look() {
    const id = event.value.trim();
    let found;
    try {
      found = id ? [await get(`/api/messages/${encodeURIComponent(id)}`, signal)]
        : (await get(`/api/messages?limit=${LETTERS}&userId=${encodeURIComponent(user.value.trim())}`, signal)).messages;
    } catch (error) {
      if (!signal.aborted) show(answer, failure(error, 'The state of the message'));
      return;
    }
    if (found.length === 0) return show(answer, empty('This user has no messages.'));
    show(answer, table('Messages, newest first', [
      { title: 'Message', head: true, cell: (one) => name(one.eventId, 40) },
      { title: 'User', cell: (one) => name(one.userId, 40) },
      { title: 'Channel', cell: (one) => name(one.channel, 32) },
      { title: 'State', cell: (one) => (one.notBefore ? `${one.state} until ${moment(one.notBefore)}` : one.state) },
      { title: 'Tries', num: true, cell: (one) => count(one.attempts) },
      { title: 'Accepted', cell: (one) => moment(one.acceptedAt) },
      { title: 'Changed', cell: (one) => moment(one.updatedAt) },
      { title: 'Last error', cell: (one) => name(one.lastError || '–', 80) },
    ], found));
  }
  const form = h('form', { class: 'toolbar', role: 'search', onsubmit: (submitted) => { submitted.preventDefault(); look(); } },
    h('div', { class: 'grow' }, field('User', user)), h('div', { class: 'grow' }, field('Or message', event)), h('button', { class: 'primary', type: 'submit' }, 'Look up'));
  return h('div', null, form, answer);
}

export function render(root, { signal }) {
  const boxes = { sends: figure('Accepted'), limited: figure('Refused (429)'), unavailable: figure('Unavailable (503)'), waiting: figure('In progress'), queue: figure('In the queue'), delivered: figure('Delivered'), retries: figure('Retries'), meanDeliveryMs: figure('Time to delivery'), senders: figure('Senders running'), deadLetters: figure('Dead letters') };
  const chart = lineChart('Sends since this page was opened', [{ name: 'accepted', tone: 'a', area: true }, { name: 'refused', tone: 'b', area: true }], { timeText: time });
  const dead = deadLetters(signal);
  const body = h('div', { class: 'grid' }, h('div', { class: 'wide-figures' }, figures(...Object.values(boxes))), card('Since this page was opened', { note: 'per second' }, chart.element), card('Find a message', {}, messages(signal)), card('Dead letters', {}, dead.element));
  root.append(pageHead('Notify', 'Messages to users, under their caps.'), body);
  const seen = [];
  let known;

  keepFresh(signal, 2000, async () => {
    let now;
    try {
      now = await get('/admin/notify', signal);
    } catch (error) {
      if (!signal.aborted && error.missing) show(body, failure(error, 'The notification gateway'));
      throw error;
    }
    const text = (key) => (key === 'meanDeliveryMs' ? (now.delivered > 0 ? span(now[key]) : '–') : count(now[key]));
    for (const [key, box] of Object.entries(boxes)) box.set(now[key] === null ? '–' : text(key), null, (key === 'deadLetters' && now[key] > 0) || (key === 'senders' && now[key] === 0));
    seen.push({ t: Date.now(), sends: now.sends, limited: now.limited });
    if (seen.length > KEPT) seen.shift();
    const per = (field) => seen.slice(1).map((one, i) => Math.max(0, ((one[field] - seen[i][field]) * 1000) / (one.t - seen[i].t)));
    chart.draw({ times: seen.slice(1).map((one) => one.t), values: [per('sends'), per('limited')], describe: `${count(now.sends)} sent in all.` });
    if (now.deadLetters !== known) dead.load();
    known = now.deadLetters;
  });
}
