// What is happening now: rates, latency, which keys are limited or busy, and the state of the store.

import { get } from '../api.js';
import { lineChart } from '../charts.js';
import { h, show } from '../dom.js';
import { name } from '../name.js';
import { card, changeButton, empty, failure, figure, figures, keepFresh, message, pageHead, table } from '../parts.js';
import { resetAfterAsking } from '../reset.js';
import { count, micros, moment, plainName, rate, span, time } from '../text.js';

const WINDOW = 300;
const DAY = 86_400_000;
const BARE = 'key|';

/** The mean of the last seconds: a single second varies too much. */
function recent(seconds, field) {
  const last = seconds.slice(-5);
  return last.length ? last.reduce((sum, one) => sum + (one[field] ?? 0), 0) / last.length : 0;
}

const latest = (seconds, field) => seconds.findLast((one) => one[field] > 0)?.[field] ?? NaN;

/** A link to the explanation of a key. */
function keyLink({ key, bucket }) {
  const bare = bucket.startsWith(BARE) && !key.includes('|');
  if (bare) return h('a', { href: `#/keys?${new URLSearchParams({ key })}` }, name(key, 60));
  // domain/policy|entries: the policy has a column of its own.
  const entries = bucket.slice(bucket.indexOf('|') + 1) || bucket;
  const whole = plainName(bucket, 120);
  return h('a', { href: `#/keys?${new URLSearchParams({ bucket })}`, title: whole, 'aria-label': whole },
    entries.split('|').slice(0, 16).flatMap((entry, i) => [i > 0 && '|', i > 0 && h('wbr'), name(entry, 60)]));
}

const TOP_WORDS = {
  limited: { none: 'No key was limited in the last minute.', caption: 'Keys that were limited most', column: 'Limited' },
  hot: { none: 'No checks in the last minute.', caption: 'Busiest keys', column: 'Checks' },
  shadow: { none: 'No shadow policy would have limited anyone in the last minute.', caption: 'Keys that shadow policies would limit most', column: 'Would be limited' },
};

function topTable(kind, keys) {
  const words = TOP_WORDS[kind];
  if (keys.length === 0) return empty(words.none);
  const most = Math.max(...keys.map((k) => k.count), 1);
  return table(words.caption, [
    { title: 'Key', head: true, cell: keyLink },
    { title: 'Policy', cell: (k) => (k.policy ? name(k.policy, 32) : '–') },
    { title: words.column, num: true, cell: (k) => (k.error ? `≤ ${count(k.count)}` : count(k.count)) },
    { title: 'Share', className: 'wide-only', cell: (k) => h('meter', { class: 'load', min: 0, max: most, value: k.count, 'aria-label': `${count(k.count)} of ${count(most)}` }) },
    { title: 'Actions', actions: true, cell: (k) => changeButton('POST /admin/reset', 'Reset…', () => resetAfterAsking({ bucket: k.bucket }, k.key), { class: 'small quiet', 'aria-label': `Reset ${plainName(k.key, 60)}` }) },
  ], keys, { stack: false });
}

const TONE = { closed: 'good', up: 'good', open: 'bad', down: 'bad' };
function statePill(state) {
  return h('span', { class: `pill ${TONE[state] ?? 'warn'}` }, String(state));
}

function facts(pairs) {
  return h('dl', { class: 'facts' }, pairs.filter(([, value]) => value !== undefined && value !== null && value !== '' && value !== false)
    .map(([term, value]) => h('div', null, h('dt', null, term), h('dd', null, value))));
}

/** Figures of limits that are decided from permits taken in advance; nothing if there were none. */
function leaseFacts(leases) {
  if (!leases) return undefined;
  const lost = `${(100 * (leases.underAdmission ?? 0)).toFixed(1)} %`;
  return `${count(leases.keys)} keys, ${count(leases.permitsHeld)} permits held, ${count(leases.callsSaved)} store calls saved, about ${lost} of permits unspent`;
}

function statusFacts(status, store) {
  const health = status.storeHealth; // of stores that are other servers
  const kept = status.policyStoreHealth; // if policies are kept in another server
  return facts([
    ['Store', h('code', null, plainName(status.store))],
    ['State', statePill(health ? (health.up ? 'up' : 'down') : store?.state ?? 'up')],
    ['Breaker', statePill(health?.breaker ?? store?.breaker ?? 'closed')],
    ['Leased', leaseFacts(health?.leases)],
    ['Last error', health?.lastError && plainName(health.lastError, 200)],
    ['Policies kept in', status.policyStore && [h('code', null, plainName(status.policyStore)), ' ', statePill(kept?.up === false ? 'down' : 'up')]],
    ['Last error there', kept?.up === false && plainName(kept.lastError, 200)],
    ['Keys held', status.keys !== undefined && count(status.keys)], // not every store counts them
    ['Policies', `${count(status.storedPolicies)} stored, ${count(status.filePolicies)} from files`],
    ['Could not decide', count(status.errors)],
    ['Decided without the store', count(status.degraded)],
    ['No policy applied', status.unmatched > 0 && (status.unmatched === 1 ? '1 check' : `${count(status.unmatched)} checks`)],
    ['Reloads', status.failedReloads ? `${count(status.reloads)}, ${count(status.failedReloads)} failed` : count(status.reloads)],
    ['Up for', span((status.uptimeSeconds ?? 0) * 1000)],
    ['Version', status.version],
  ]);
}

/** The problems that an operator must see first. */
function problemsOf({ storeHealth: store, policyStoreHealth: kept, setAside = [], cannotApply = [] }) {
  return [
    store?.up === false && message('bad',
      `The store is down${store.lastError ? ` (${plainName(store.lastError, 200)})` : ''}. Until it is back, on_store_error of each policy decides: deny refuses, allow admits, and local, the default, admits a share of the limit on this node.`),
    store?.lostDataAt && Date.now() - Date.parse(store.lostDataAt) < DAY && message('bad',
      `The store lost data at ${moment(store.lostDataAt)} (restarted without persistence, emptied, restored from a backup, or failed over to a replica that was behind). Limits may have started with a full quota then.`),
    kept?.up === false && message('warn', kept.known ?
      'The policy database is down. The last known policies stay active; they cannot be changed until it is back.' :
      'The policy database is down, and this node has never read it: only policies from files are active.'),
    setAside.length > 0 && message('', h('p', null, 'Stored but not active, because a file has a policy with the same name, or because no file has the policy that they override: ',
      setAside.slice(0, 10).flatMap((one, i) => [i > 0 && ', ', name(one, 60)]), setAside.length > 10 && ` and ${count(setAside.length - 10)} more`)),
    cannotApply.length > 0 && message('bad', h('p', null, 'This node cannot apply these policies; on_store_error of each decides: ',
      cannotApply.slice(0, 10).flatMap((one, i) => [i > 0 && ', ', name(one, 200)]), cannotApply.length > 10 && ` and ${count(cannotApply.length - 10)} more`)),
  ];
}

export function render(root, { signal }) {
  const allowed = figure('Allowed');
  const limited = figure('Limited');
  const p50 = figure('Latency, p50');
  const p99 = figure('Latency, p99');
  const rates = lineChart('Checks a second', [{ name: 'allowed', tone: 'a', area: true }, { name: 'limited', tone: 'b', area: true }], { timeText: time });
  const latency = lineChart('Latency', [{ name: 'p50', tone: 'c' }, { name: 'p99', tone: 'a' }], { timeText: time, format: micros, log: true });
  const ratesBox = h('div', null, rates.element);
  const latencyBox = h('div', null, latency.element);
  const tops = { limited: h('div'), hot: h('div'), shadow: h('div') };
  const store = h('div');
  const problems = h('div', { class: 'notices' });
  let live = null;

  root.append(pageHead('Overview', 'The last five minutes, as they happen.'), problems, h('div', { class: 'grid' },
    figures(allowed, limited, p50, p99),
    card('Checks a second', { className: 'half' }, ratesBox),
    card('Time to answer', { className: 'half', note: 'all requests, inside the service' }, latencyBox),
    card('Most limited keys', { className: 'half' }, tops.limited),
    card('Busiest keys', { className: 'half' }, tops.hot),
    card('Keys that shadow policies would limit', {}, tops.shadow),
    card('Store and service', {}, store)));

  keepFresh(signal, 1000, async () => {
    try {
      live = await get('/admin/live', signal);
    } catch (error) {
      if (!signal.aborted && error.missing) [ratesBox, latencyBox].forEach((box) => show(box, failure(error, 'The live rate')));
      throw error;
    }
    const seconds = (live.perSecond ?? []).slice(-WINDOW);
    const now = { allowed: recent(seconds, 'allowed'), limited: recent(seconds, 'limited'), p50: latest(seconds, 'p50us'), p99: latest(seconds, 'p99us') };
    allowed.set(rate(now.allowed), 'a second');
    limited.set(rate(now.limited), 'a second', now.limited > 0);
    // A second without requests has no latency: then shows the figures of the last second that had some.
    const idle = !(seconds.at(-1)?.p50us > 0) && now.p50 > 0 ? 'at the last request' : '';
    p50.set(micros(now.p50), idle);
    p99.set(micros(now.p99), idle);
    const times = seconds.map((one) => one.t);
    rates.draw({ times, values: [seconds.map((one) => one.allowed), seconds.map((one) => one.limited)],
      describe: `Now ${rate(now.allowed)} allowed and ${rate(now.limited)} limited a second.` });
    latency.draw({ times, values: ['p50us', 'p99us'].map((field) => seconds.map((one) => (one[field] > 0 ? one[field] : NaN))),
      describe: `${idle ? 'At the last request' : 'Now'} ${micros(now.p50)} at the median, ${micros(now.p99)} at the 99th percentile.` });
  });
  for (const kind of ['limited', 'hot', 'shadow']) {
    keepFresh(signal, 3000, async () => {
      try {
        show(tops[kind], topTable(kind, ((await get(`/admin/top?kind=${kind}&n=10`, signal)).keys ?? []).slice(0, 10)));
      } catch (error) {
        if (!signal.aborted) show(tops[kind], failure(error, 'The list'));
        throw error;
      }
    });
  }
  keepFresh(signal, 5000, async () => {
    try {
      const status = await get('/admin/status', signal);
      show(store, statusFacts(status, live?.store));
      const wrong = status.reloadProblems ?? [];
      show(problems, problemsOf(status), wrong.length > 0 && h('div', { class: 'message bad', role: 'alert' },
        h('p', null, 'The policy files could not be reloaded; the previous policies stay active.'),
        wrong.slice(0, 5).map((text) => h('p', { class: 'small mono' }, String(text).slice(0, 500)))));
    } catch (error) {
      if (!signal.aborted) show(store, failure(error, 'The status'));
      throw error;
    }
  });
}
