// Keys: look one up, see why it is limited and when that ends, reset it; leaf through all of them.

import { get, page, path, post } from '../api.js';
import { field, h, show } from '../dom.js';
import { name } from '../name.js';
import { attempt, button, card, confirm, empty, failure, message, pageHead, pager, table } from '../parts.js';
import { count, fromBucket, plainName, span } from '../text.js';

const PER_PAGE = 50;
const BARE = 'key|';

/** The service counts in milliseconds; people do not. */
const inWords = (text, longest) => plainName(text, longest).replace(/\b(\d+) ms\b/g, (_, ms) => span(Number(ms)));

function why(explained) {
  const kind = explained.allowed ? 'good' : 'bad';
  const lines = [explained.why || (explained.allowed ? 'A check would be allowed.' : 'A check would be refused.')];
  if (!explained.allowed && !(explained.retryAfterMs > 0)) lines.push('Waiting does not help: the cost is above the limit.');
  // Not an alert: the person asked for it, and the region around it is announced.
  return h('div', { class: `message ${kind}` }, lines.map((line) => h('p', null, inWords(line, 400))));
}

function policyTable(policies) {
  return table('Policies that meet this request', [
    { title: 'Policy', head: true, cell: (p) => name(p.policy, 60) },
    { title: 'Quota', cell: (p) => h('code', { class: 'small' }, plainName(p.quota, 120)) },
    { title: 'Left', num: true, cell: (p) => `${count(p.remaining)} of ${count(p.limit)}` },
    { title: 'Use', cell: (p) => h('meter', { class: 'load', min: 0, max: Math.max(p.limit, 1), value: Math.max(p.limit - p.remaining, 0), 'aria-label': `${count(p.limit - p.remaining)} of ${count(p.limit)} used` }) },
    { title: 'As new in', num: true, cell: (p) => span(p.resetAfterMs) },
    { title: 'Says', cell: (p) => [p.shadow && h('span', { class: 'pill warn' }, 'shadow'), ' ', inWords(p.why, 200)] },
  ], policies);
}

/** "user=42 route=/pay" → entries; a text without '=' is a bare key. */
export function readRequest(text) {
  const trimmed = text.trim();
  if (!/^[\w.-]+=\S*(\s+[\w.-]+=\S*)*$/.test(trimmed)) return { key: text };
  return Object.fromEntries(trimmed.split(/\s+/).map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]));
}

export function render(root, { query, signal }) {
  const detail = h('div', { 'aria-live': 'polite' });
  const input = h('input', { type: 'search', value: query.get('key') ?? '', autocomplete: 'off', spellcheck: 'false', placeholder: 'user-123, or user=42 route=/v1/pay' });

  async function look(text) {
    if (text === '') return show(detail);
    if (text.length > 1024) return show(detail, message('bad', 'A key has at most 1,024 bytes.'));
    const request = readRequest(text);
    try {
      const explained = await get(`/admin/explain?${new URLSearchParams(request)}`, signal);
      const reset = request.key !== undefined && button('Reset…', () => resetKey(text), { class: 'danger', 'aria-label': `Reset ${plainName(text, 60)}` });
      const heading = h('h2', { id: 'found', tabindex: '-1' }, name(text));
      show(detail, h('section', { class: 'card', 'aria-labelledby': 'found' },
        h('div', { class: 'card-head' }, heading, h('span', { class: `pill ${explained.allowed ? 'good' : 'bad'}` }, explained.allowed ? 'has room' : 'limited'), h('span', { class: 'spacer' }), reset),
        why(explained), explained.policies?.length > 0 ? policyTable(explained.policies) : empty('No policy meets this request.')), h('p', null, '\u00a0'));
    } catch (error) {
      if (!signal.aborted) show(detail, message('bad', error.message));
    }
  }

  async function resetKey(key) {
    if (!await confirm('Reset this key?', [`Everything that “${plainName(key)}” has used is forgotten.`, 'It may ask anew from its full limit at once. This cannot be undone.'], 'Reset')) return;
    if (await attempt(() => post(path`/admin/reset/${key}`), 'The key was reset.')) {
      look(key);
      load();
    }
  }

  // --- all keys: one page at a time; the service keeps the place ---
  const list = h('div', null, empty('Reading…'));
  const prefix = h('input', { type: 'search', value: query.get('bucket') ?? '', autocomplete: 'off', spellcheck: 'false', placeholder: 'key|user-, or api/per-user|' });
  let cursors = [''];

  async function load() {
    const cursor = cursors.at(-1);
    const params = new URLSearchParams({ limit: String(PER_PAGE), ...(cursor && { cursor }), ...(prefix.value && { prefix: prefix.value }) });
    try {
      const found = await page(`/admin/metrics?${params}`, signal);
      const rows = found.items.slice(0, PER_PAGE);
      const from = (cursors.length - 1) * PER_PAGE;
      show(list, rows.length === 0 ? empty(prefix.value ? 'No bucket begins so.' : 'No keys are held now.') : table('Buckets, in the order of their names', [
        { title: 'Bucket', head: true, cell: (k) => (k.bucket.startsWith(BARE) ? h('button', { type: 'button', class: 'link', onclick: () => open(fromBucket(k.bucket.slice(BARE.length))) }, name(k.bucket, 120)) : name(k.bucket, 120)) },
        { title: 'Algorithm', cell: (k) => String(k.algorithm).toLowerCase().replaceAll('_', ' ') },
      ], rows), pager({
        noun: 'buckets', from, shown: rows.length, total: prefix.value ? undefined : found.total,
        onPrevious: cursors.length > 1 ? () => { cursors.pop(); load(); } : null,
        onNext: found.next ? () => { cursors.push(found.next); load(); } : null,
      }));
    } catch (error) {
      if (!signal.aborted) show(list, failure(error, 'The list of keys'));
    }
  }
  function open(key) {
    input.value = key;
    look(key).then(() => detail.querySelector('h2')?.focus());
    scrollTo(0, 0);
  }
  let typing;
  prefix.addEventListener('input', () => {
    clearTimeout(typing);
    typing = setTimeout(() => { cursors = ['']; load(); }, 200);
  });

  root.append(
    pageHead('Keys', 'Look up a key, or a request by its entries: why it is limited, and when that ends. Looking charges nothing.'),
    h('form', { class: 'toolbar', role: 'search', onsubmit: (event) => { event.preventDefault(); look(input.value); } },
      h('div', { class: 'grow' }, field('Key or request', input)), h('button', { class: 'primary', type: 'submit' }, 'Explain')),
    detail,
    card('Keys held by the store', { aside: h('div', null, field('Begins with', prefix)) }, list));
  if (input.value) look(input.value);
  load();
}
