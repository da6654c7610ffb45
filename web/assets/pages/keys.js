// Keys: look one up, see why it is limited and when that ends, reset it; page through all of them.

import { get, page } from '../api.js';
import { field, h, show } from '../dom.js';
import { entriesOf, makeException } from '../exception.js';
import { name } from '../name.js';
import { button, card, changeButton, empty, failure, message, pageHead, pager, table } from '../parts.js';
import { resetAfterAsking } from '../reset.js';
import { chargingWords, count, fromBucket, plainName, span } from '../text.js';

const PER_PAGE = 50;
const BARE = 'key|';
/** CL.THROTTLE: the quota is part of each command. */
const THROTTLE = 'cl|';
/** How many buckets are searched for a page of those that are limited or contain a text, and how many in one request. */
const MOST_LOOKED_AT = 20000;
const AT_ONCE = 1000;

/** Writes durations of the service, which are in milliseconds, in readable units. */
const inWords = (text, longest) => plainName(text, longest).replace(/\b(\d+) ms\b/g, (_, ms) => span(Number(ms)));

/** Allowed as far as these entries go, but other policies may refuse the client. */
const isPartial = (explained) => Boolean(explained.allowed && explained.domain && explained.notes);

function why(explained) {
  // Without its command, it is not known whether CL.THROTTLE would allow a request.
  const kind = explained.throttle || isPartial(explained) ? 'warn' : explained.allowed ? 'good' : 'bad';
  const lines = [explained.why || (explained.allowed ? 'A check would be allowed.' : 'A check would be limited.')];
  if (explained.note) lines.push(explained.note);
  if (explained.hint) lines.push(explained.hint);
  lines.push(...(explained.notes ?? []));
  if (!explained.allowed && explained.policy && !(explained.retryAfterMs > 0)) lines.push('Waiting does not help: the cost exceeds the limit.');
  // Not an alert: the user asked for it, and the region around it is announced.
  return h('div', { class: `message ${kind}` }, lines.map((line) => h('p', null, inWords(line, 400))));
}

const policyLink = (policy) => h('a', { href: `#/policies?${new URLSearchParams({ search: policy })}` }, name(policy, 60));
/** When a bucket has its full quota again. */
const asNew = (ms) => (ms === 0 ? 'now' : span(ms));
const used = (share, limit) => `${count(share)} of ${count(limit)}`;

/** What this node may admit of a leased policy without the store; the store counts it as used. */
function heldHere(policy) {
  if (policy.held === undefined) return null;
  const share = policy.sharePerSecond > 0 ? ` and ${count(policy.sharePerSecond)} a second` : '';
  return h('div', { class: 'muted small' }, policy.leased || policy.held > 0 ? `in the store; this node holds ${count(policy.held)}${share}` : 'in the store; not leased here now',
    '. What nodes hold or have lost counts as used until the window ends or the bucket has refilled.');
}

/** A policy that another one replaces has no bucket, so it has no figures for used and left. */
const applies = (policy) => Boolean(policy.bucket);

function policyTable(policies, changed) {
  return table('Policies that apply to this request', [
    { title: 'Policy', head: true, cell: (p) => policyLink(p.policy) },
    { title: 'Bucket', cell: (p) => (p.bucket ? name(p.bucket, 80) : '–') },
    { title: 'Quota', cell: (p) => h('code', { class: 'small' }, plainName(p.quota, 120)) },
    { title: 'Left', num: true, cell: (p) => (applies(p) ? [used(p.remaining, p.limit), heldHere(p)] : '–') },
    { title: 'Used', cell: (p) => applies(p) && h('meter', { class: 'load', min: 0, max: Math.max(p.limit, 1), value: Math.max(p.limit - p.remaining, 0), 'aria-label': `${count(p.limit - p.remaining)} of ${count(p.limit)} used` }) },
    { title: 'Back to full in', num: true, cell: (p) => (applies(p) ? asNew(p.resetAfterMs) : '–') },
    { title: 'Result', cell: (p) => [p.shadow && h('span', { class: 'pill warn' }, 'shadow'), ...chargingWords(p).map((w) => h('span', { class: 'pill' }, w)), ' ', inWords(p.why, 200)] },
    { title: 'Actions', actions: true, cell: (p) => p.bucket && p.limit > 0 && changeButton('POST /admin/policies', 'Exception…', async () => { if (await makeException(p)) changed(); }, { class: 'small', 'aria-label': `Exception from ${plainName(p.policy, 60)}` }) },
  ], policies);
}

/** What this node has assigned to the Envoys connected to it, which they may admit by themselves. */
function assignmentTable(assignments) {
  const sum = assignments.reduce((all, one) => all + (one.perSecond ?? 0), 0);
  return [h('h3', null, 'Assigned to Envoys'),
    h('p', { class: 'muted small' }, `${count(assignments.length)} connected here, ${count(sum)} requests a second in all. Other nodes have their own.`),
    table('Assignments of this bucket', [
      { title: 'May admit a second', head: true, cell: (a) => (a.unlimited ? 'no limit' : a.perSecond === 0 ? h('strong', null, 'nothing') : count(a.perSecond)) },
      { title: 'Asked for a second', num: true, cell: (a) => (a.demandPerSecond > 0 ? count(a.demandPerSecond) : '–') },
      { title: 'Sent', num: true, cell: (a) => (a.pushedMsAgo === undefined ? 'not yet' : `${span(a.pushedMsAgo)} ago`) },
    ], assignments)];
}

/** Names of buckets start with the policy (domain/name), or a word for those of no policy. */
const isBucket = (text) => /^(key|cl|[^|]*\/[^|]*)\|/.test(text);

/** "user=42 route=/pay" → entries (domain=api among them); "api/per-user|user:42", "key|…" and "cl|…" are buckets, anything else a bare key. */
export function readRequest(text) {
  const trimmed = text.trim();
  if (/^[\w.-]+=\S*(\s+[\w.-]+=\S*)*$/.test(trimmed)) {
    return Object.fromEntries(trimmed.split(/\s+/).map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]));
  }
  return isBucket(text) ? { bucket: text } : { key: text };
}

/** Why no policy is shown for a bucket. A bucket of an earlier algorithm stays until it is full again. */
function whyNone(bucket, rows) {
  if (bucket.bucket.startsWith(THROTTLE)) return 'quota from the command';
  return rows.some((one) => one.bucket === bucket.bucket && one.policy) ? 'from before the algorithm changed' : 'no active policy';
}

export function render(root, { query, signal }) {
  const detail = h('div', { 'aria-live': 'polite' });
  const input = h('input', { type: 'search', value: query.get('key') ?? query.get('bucket') ?? '', autocomplete: 'off', spellcheck: 'false', placeholder: 'user-123, user=42 route=/v1/pay, or a bucket' });

  function whichDomain(request, domains) {
    return h('section', { class: 'card', 'aria-labelledby': 'found' }, h('h2', { id: 'found', tabindex: '-1' }, 'Which domain?'),
      h('p', null, 'Policies of several domains apply to this request.'),
      h('div', { class: 'buttons' }, domains.map((domain) => button(plainName(domain, 60), () => {
        input.value = `domain=${domain} ${input.value.trim()}`;
        lookAt({ ...request, domain }, input.value);
      }))));
  }

  const resetButton = (subject, label, attributes = {}) => changeButton('POST /admin/reset', 'Reset…', async () => {
    if (!await resetAfterAsking(subject, label)) return;
    if (input.value) look(input.value);
    load();
  }, { class: 'danger', 'aria-label': `Reset ${plainName(label, 60)}`, ...attributes });

  async function lookAt(request, text) {
    const heading = h('h2', { id: 'found', tabindex: '-1' }, name(text));
    const section = (...content) => show(detail, h('section', { class: 'card', 'aria-labelledby': 'found' }, content), h('p', null, '\u00a0'));
    const head = (...pills) => h('div', { class: 'card-head' }, heading, pills, h('span', { class: 'spacer' }), resetButton(request, text));
    try {
      const explained = await get(`/admin/explain?${new URLSearchParams(request)}`, signal);
      const others = explained.search ?? request.key;
      section(head(h('span', { class: `pill ${isPartial(explained) ? 'warn' : explained.allowed ? 'good' : 'bad'}` }, isPartial(explained) ? 'has room here' : explained.allowed ? 'has room' : 'limited'),
        explained.domain && explained.domain !== 'default' && h('span', { class: 'muted small' }, 'domain ', name(explained.domain, 60))),
      why(explained), explained.policies?.length > 0 ? policyTable(explained.policies, () => afterException(request, text)) : empty('No policy applies to this request.'),
      explained.assignments?.length > 0 && assignmentTable(explained.assignments),
      others !== undefined && h('p', { class: 'muted small' }, 'Other buckets may count the same client. ', button('Find it in all buckets', () => find(others), { class: 'small' })));
    } catch (error) {
      if (signal.aborted) return;
      if (error.body?.domains) show(detail, whichDomain(request, error.body.domains));
      else if (error.status === 404 && request.bucket) section(head(), message('', error.message));
      else show(detail, message('bad', error.message));
    }
  }

  /** The exception has its own bucket, so explains the request that led to the old one again. */
  function afterException(request, text) {
    load();
    const entries = Object.entries(request.bucket && !request.bucket.startsWith(BARE) ? entriesOf(request.bucket) : {});
    if (entries.length === 0 || entries.some(([, value]) => /\s/.test(value))) return lookAt(request, text);
    const domain = fromBucket(request.bucket.slice(0, request.bucket.indexOf('/')));
    input.value = [['domain', domain], ...entries].map((pair) => pair.join('=')).join(' ');
    return look(input.value);
  }

  async function look(text) {
    if (text === '') return show(detail);
    if (text.length > (isBucket(text) ? 4096 : 1024)) return show(detail, message('bad', 'A key has at most 1,024 bytes.'));
    return lookAt(readRequest(text), text);
  }

  // --- all keys: one page at a time; the service returns a cursor ---
  const list = h('div', null, empty('Loading…'));
  const prefix = h('input', { type: 'search', value: '', autocomplete: 'off', spellcheck: 'false', placeholder: 'api/per-user|' });
  const part = h('input', { type: 'search', value: '', autocomplete: 'off', spellcheck: 'false', placeholder: 'a customer, such as 42' });
  const onlyLimited = h('input', { type: 'checkbox' });
  let cursors = [''];
  let before = [0]; // number of rows on the pages before each page

  function ask(cursor, limit) {
    const params = new URLSearchParams({ limit: String(limit), ...(cursor && { cursor }), ...(prefix.value && { prefix: prefix.value }) });
    return page(`/admin/metrics?${params}`, signal);
  }

  const searches = () => onlyLimited.checked || part.value !== '';
  const wanted = (k) => (!onlyLimited.checked || k.status === 'LIMITED') && (k.bucket.includes(part.value) || fromBucket(k.bucket).includes(part.value));

  /** Goes through the store until it has found a page of those that are wanted. */
  async function searchFrom(cursor) {
    const items = [];
    let next = cursor;
    for (let seen = 0; seen < MOST_LOOKED_AT && items.length < PER_PAGE; seen += AT_ONCE) {
      const found = await ask(next, AT_ONCE);
      items.push(...found.items.filter(wanted));
      next = found.next;
      if (!next) break;
    }
    return { items, next };
  }

  const stateOf = (k) => {
    if (k.status === 'LIMITED') return h('strong', null, 'limited');
    if (k.status === 'SHADOW') return 'over a shadow limit';
    if (k.status === 'REPLACED') return 'used up; another policy applies';
    return k.status ? 'has room' : '–';
  };

  function nothingFound(more) {
    if (more) return 'Nothing in this part of the store; see the next page.';
    if (onlyLimited.checked) return part.value || prefix.value ? 'None of these buckets is limited now.' : 'No key is limited now.';
    if (part.value) return 'No bucket contains this.';
    return prefix.value ? 'No bucket has this prefix.' : 'No keys are held now.';
  }

  async function load() {
    const cursor = cursors.at(-1);
    try {
      const found = await (searches() ? searchFrom(cursor) : ask(cursor, PER_PAGE));
      const rows = found.items; // Redis may return a few more than requested
      const nothing = nothingFound(found.next);
      const from = before.at(-1);
      show(list, rows.length === 0 ? empty(nothing) : table('Buckets, in the order of their names', [
        { title: 'Bucket', head: true, cell: (k) => h('button', { type: 'button', class: 'link', onclick: () => open(k.bucket) }, name(k.bucket, 120)) },
        { title: 'Policy', cell: (k) => (k.policy ? policyLink(k.policy) : h('span', { class: 'muted' }, whyNone(k, rows))) },
        { title: 'Algorithm', cell: (k) => h('span', { class: 'nowrap' }, String(k.algorithm).toLowerCase().replaceAll('_', ' ')) },
        { title: 'Used', num: true, cell: (k) => (k.capacity === undefined ? '–' : used(k.windowRequestCount, k.capacity)) },
        { title: 'State', cell: stateOf },
        { title: 'Back to full in', num: true, cell: (k) => (k.resetAfterMs === undefined ? '–' : asNew(k.resetAfterMs)) },
        { title: 'Actions', actions: true, cell: (k) => resetButton({ bucket: k.bucket }, k.bucket, { class: 'small quiet' }) },
      ], rows), pager({
        noun: 'buckets', from, shown: rows.length, total: prefix.value || searches() ? undefined : found.total,
        onPrevious: cursors.length > 1 ? () => { cursors.pop(); before.pop(); load(); } : null,
        onNext: found.next ? () => { cursors.push(found.next); before.push(from + rows.length); load(); } : null,
      }));
    } catch (error) {
      if (!signal.aborted) show(list, failure(error, 'The list of keys'));
    }
  }
  function find(text) {
    part.value = text;
    prefix.value = '';
    again();
    part.focus();
  }
  /** A bare key is shown as such. */
  function open(bucket) {
    const bare = bucket.startsWith(BARE) ? fromBucket(bucket.slice(BARE.length)) : '';
    input.value = bare === '' || bare.includes('|') ? bucket : bare;
    look(input.value).then(() => detail.querySelector('h2')?.focus());
    scrollTo(0, 0);
  }
  function again() {
    cursors = [''];
    before = [0];
    load();
  }
  let typing;
  for (const input of [prefix, part]) {
    input.addEventListener('input', () => {
      clearTimeout(typing);
      typing = setTimeout(again, 200);
    });
  }
  onlyLimited.addEventListener('change', again);

  root.append(
    pageHead('Keys', 'Enter a key, or a request by its entries, to see why it is limited and when that ends. This charges nothing.'),
    h('form', { class: 'toolbar', role: 'search', onsubmit: (event) => { event.preventDefault(); look(input.value); } },
      h('div', { class: 'grow' }, field('Key or request', input)), h('button', { class: 'primary', type: 'submit' }, 'Explain')),
    detail,
    card('Keys held by the store', { aside: h('div', { class: 'toolbar' }, h('label', { class: 'check' }, onlyLimited, 'Limited only'), field('Contains', part), field('Begins with', prefix)) }, list));
  if (input.value) look(input.value);
  load();
}
