// The policies: find, create, change, shadow → enforce, delete, roll back to a version.

import { algorithmOf, readAlgorithms } from '../algorithms.js';
import { del, get, page, path, post, put, refusalOf } from '../api.js';
import { field, h, select, show } from '../dom.js';
import { diff, diffOf } from '../diff.js';
import { newEnd } from '../end.js';
import { name } from '../name.js';
import { backToFile, byOverride, goesBack, overrideFile } from '../override.js';
import { attempt, button, card, changeButton, confirm, dialog, empty, failure, pageHead, pager, table } from '../parts.js';
import { chargingWords, count, inUnits, moment, plainName, span } from '../text.js';
import { bodyOf, editPolicy, pathOf } from '../policy_form.js';

const PER_PAGE = 50;
const MOST = 20000;

export const stateOf = (policy) => (policy.unlimited ? 'unlimited' : policy.shadow ? 'shadow' : 'enforced');
const TONE = { enforced: 'good', shadow: 'warn', unlimited: '' };

/** "fixed_window(limit=5, window=1m)" → "5 in 1 min", as policies of the admin API are written. */
function fileQuota({ quota, capacity }) {
  const [, refill, period] = /refill=(\d+) per ([^)]+)/.exec(quota) ?? [];
  const [, word, window] = /(window|lease)=([^,)]+)/.exec(quota) ?? [];
  if (refill) return `${count(capacity)}, refills ${count(Number(refill))} ${period === '1s' ? 'a second' : `every ${inUnits(period)}`}`;
  if (!window) return quota === 'unlimited' ? 'no limit' : quota;
  return word === 'lease' ? `${count(capacity)} at once, lease ${inUnits(window)}` : `${count(capacity)} in ${inUnits(window)}`;
}

function quotaText(policy) {
  if (policy.quota) return fileQuota(policy);
  if (policy.type === 'OVERRIDE') return policy.shadow ? 'in shadow' : 'enforced';
  if (policy.unlimited) return 'no limit';
  const window = span((policy.windowSeconds ?? 0) * 1000);
  const algorithm = algorithmOf(policy.type);
  if (algorithm?.fields.includes('refillRate')) return `${count(policy.capacity)}, refills ${count(policy.refillRate)} a second`;
  return algorithm?.leases ? `${count(policy.capacity)} at once, lease ${window}` : `${count(policy.capacity)} in ${window}`;
}

function matchText(policy) {
  const entries = Object.entries(policy.match ?? {});
  if (policy.type === 'OVERRIDE') return 'a policy that is in no file';
  if (policy.source === 'default') return 'keys without their own policy';
  if (entries.length === 0) return policy.readOnly || policy.match ? 'every request' : 'this key';
  return entries.map(([k, v]) => `${k} = ${v}`).join(', ');
}

/** Where a policy is defined. A long path is cut at the front, so that file and line stay visible. */
function placeOf(policy) {
  const place = policy.definedIn ?? 'override';
  return place.length > 60 ? `…${place.slice(-59)}` : place;
}

async function readAll(source, signal) {
  const all = [];
  let cursor = '';
  do {
    const query = new URLSearchParams({ limit: '1000', ...(source && { source }), ...(cursor && { cursor }) });
    const found = await page(`/admin/policies?${query}`, signal);
    all.push(...found.items);
    cursor = found.next;
  } while (cursor && all.length < MOST);
  if (!source) all.push(...await get('/admin/policies?source=default', signal));
  // An override is shown with the policy that it overrides.
  const used = new Set(all.map((p) => p.override?.policyKey));
  return all.filter((p) => p.type !== 'OVERRIDE' || !used.has(p.policyKey));
}

async function showVersions(policy, changed) {
  const key = policy.policyKey;
  let versions;
  try {
    ({ versions } = await get(path`/admin/policies/${key}/versions`));
  } catch (error) {
    await dialog('Versions', (close) => [failure(error, 'The history of this policy'), h('div', { class: 'buttons' }, button('Close', () => close()))], { narrow: true });
    return;
  }
  const before = new Map(versions.map((v, i) => [v, versions[i + 1]?.policy]));
  const chosen = await dialog(`Versions of ${plainName(key, 60)}`, (close) => [
    versions.length === 0 ? empty('No versions are kept.') : table('Versions, newest first', [
      { title: 'Version', head: true, cell: (v) => (v.policy ? String(v.version) : '–') },
      { title: 'What', cell: (v) => name(v.action, 20) },
      { title: 'When', cell: (v) => moment(v.at) },
      { title: 'Who', cell: (v) => name(v.who || '–', 40) },
      { title: 'Limit', cell: (v) => (v.policy ? `${[quotaText(v.policy), ...chargingWords(v.policy)].join(', ')}${v.policy.shadow && v.policy.type !== 'OVERRIDE' ? ', shadow' : ''}` : 'deleted') },
      { title: 'Changed', cell: (v) => (before.get(v) || !v.policy ? diff(before.get(v), v.policy) : h('span', { class: 'muted' }, 'created')) },
      { title: 'Actions', actions: true, cell: (v) => v.version !== policy.version && v.policy &&
        changeButton('POST /admin/policies/{key}/rollback', 'Roll back', () => close(v), { class: 'small', 'aria-label': `Roll back to version ${v.version}` }) },
    ], versions),
    h('div', { class: 'buttons' }, button('Close', () => close(), { autofocus: true })),
  ], { wide: true });
  if (chosen === undefined) return;
  const end = await newEnd(chosen.policy);
  if (end === undefined) return;
  const question = [`The policy “${plainName(key)}” becomes what it was as version ${chosen.version}, at once.`];
  try {
    const { changes } = await get(`${path`/admin/policies/${key}/diff`}?${new URLSearchParams({ from: String(policy.version), to: String(chosen.version) })}`);
    question.push(diffOf(changes.map(({ field: name, before: was, after: is }) => [name, was ?? undefined, is ?? undefined])));
  } catch { /* the confirmation works without the diff */ }
  if (!await confirm('Roll back?', question, 'Roll back', { danger: false })) return;
  if (await attempt(() => post(path`/admin/policies/${key}/rollback`, { version: chosen.version, ...end }), `Rolled back to version ${chosen.version}.`)) changed();
}

export function render(root, { query, signal }) {
  let policies = [];
  let at = 0;
  const list = h('div', null, empty('Loading…'));
  const search = h('input', { type: 'search', value: query.get('search') ?? '', placeholder: 'Name, entry or value', autocomplete: 'off', spellcheck: 'false' });
  const state = select([['', 'Any state'], ['enforced', 'Enforced'], ['shadow', 'Shadow'], ['unlimited', 'Unlimited']]);
  const source = select([['', 'All'], ['admin', 'Admin API'], ['files', 'Policy files']]);

  async function load() {
    try {
      await readAlgorithms(signal);
      policies = await readAll(source.value, signal);
      draw();
    } catch (error) {
      if (!signal.aborted) show(list, failure(error, 'The list of policies'));
    }
  }

  // Also reads the list again after a failed change: someone else may have changed the policy.
  const edit = async (policy) => {
    await editPolicy(policy);
    load();
  };
  async function enforce(policy) {
    const on = policy.shadow;
    const title = on ? 'Enforce this policy?' : 'Put this policy in shadow mode?';
    const text = on ? `“${plainName(policy.policyKey)}” starts to refuse requests at once.` : `“${plainName(policy.policyKey)}” keeps counting but refuses no one.`;
    if (!await confirm(title, text, on ? 'Enforce' : 'Shadow', { danger: false })) return;
    await attempt(() => put(pathOf(policy), bodyOf({ ...policy, shadow: !on })), on ? 'Enforced.' : 'Now in shadow mode.');
    load();
  }
  async function remove(policy) {
    if (!await confirm('Delete this policy?', [`“${plainName(policy.policyKey)}” stops applying at once.`, 'It stays in the audit log, where the deletion can be undone.'], 'Delete')) return;
    await attempt(() => del(pathOf(policy)), 'Deleted.');
    load();
  }
  function fileActions(policy) {
    const label = plainName(policy.policyKey, 60);
    const then = (change) => async () => {
      await change(policy);
      load();
    };
    const word = policy.shadow ? 'Enforce' : 'Shadow';
    return [
      !policy.unlimited && !goesBack(policy) && changeButton('POST /admin/policies', word, then(overrideFile), { class: 'small', 'aria-label': `${word} ${label}` }), ' ',
      policy.override && changeButton('DELETE /admin/policies/{key}', 'Back to file', then(backToFile), { class: 'small', 'aria-label': `Back to file for ${label}` }), ' ',
      policy.override && button('Versions', () => showVersions(policy.override, load), { class: 'small quiet', 'aria-label': `Versions of the override of ${label}` }),
    ];
  }
  function actions(policy) {
    const label = plainName(policy.policyKey, 60);
    if (policy.source === 'default') return null;
    if (policy.readOnly) return fileActions(policy);
    const over = policy.type === 'OVERRIDE';
    return [
      !policy.unlimited && !over && changeButton('PUT /admin/policies/{key}', policy.shadow ? 'Enforce' : 'Shadow', () => enforce(policy), { class: 'small', 'aria-label': `${policy.shadow ? 'Enforce' : 'Shadow'} ${label}` }), ' ',
      button('Versions', () => showVersions(policy, load), { class: 'small quiet', 'aria-label': `Versions of ${label}` }),
      changeButton('DELETE /admin/policies/{key}', 'Delete', () => remove(policy), { class: 'small quiet', 'aria-label': `Delete ${label}` }),
    ];
  }

  function matching() {
    const words = search.value.trim().toLowerCase();
    return policies.filter((p) => (!state.value || stateOf(p) === state.value) &&
      (!words || `${p.policyKey}\n${p.domain ?? ''}\n${matchText(p)}\n${p.definedIn ?? ''}`.toLowerCase().includes(words)));
  }

  function draw() {
    const found = matching();
    at = Math.min(at, Math.max(0, Math.floor((found.length - 1) / PER_PAGE) * PER_PAGE));
    const rows = found.slice(at, at + PER_PAGE);
    const turn = (to) => () => { at = to; draw(); list.querySelector('tbody')?.scrollIntoView({ block: 'center' }); };
    show(list, rows.length === 0 ? empty(policies.length === 0 ? 'There are no policies here yet.' : 'No policy matches.') : table('Policies', [
      { title: 'Policy', head: true, cell: (p) => (p.readOnly || p.type === 'OVERRIDE' ? [name(p.policyKey, 60), h('div', { class: 'muted small place' }, name(placeOf(p), 60))] : refusalOf('PUT /admin/policies/{key}') ? name(p.policyKey, 60) : h('button', { class: 'link', type: 'button', 'aria-label': `Edit ${plainName(p.policyKey, 60)}`, onclick: () => edit(p) }, name(p.policyKey, 60))) },
      { title: 'State', cell: (p) => [h('span', { class: `pill ${TONE[stateOf(p)]}` }, stateOf(p)), byOverride(p)] },
      { title: 'Limit', cell: (p) => [quotaText(p), ...chargingWords(p)].join(', ') },
      { title: 'Applies to', cell: (p) => [p.match ? name(matchText(p), 80) : h('span', { class: 'muted' }, matchText(p)), p.domain && p.domain !== 'default' && h('div', { class: 'muted small' }, 'domain ', name(p.domain, 60))] },
      ...(found.some((p) => p.expiresAt) ? [{ title: 'Until', cell: (p) => (p.expiresAt ? moment(p.expiresAt) : '–') }] : []),
      { title: 'Actions', actions: true, cell: actions },
    ], rows), pager({
      noun: 'policies', from: at, shown: rows.length, total: found.length,
      onPrevious: at > 0 ? turn(at - PER_PAGE) : null,
      onNext: at + PER_PAGE < found.length ? turn(at + PER_PAGE) : null,
    }));
  }

  const again = () => { at = 0; draw(); };
  search.addEventListener('input', again);
  state.addEventListener('change', again);
  source.addEventListener('change', () => { at = 0; load(); });
  root.append(
    pageHead('Policies', 'All limits that apply. A change is active and saved as soon as it is confirmed, and recorded in the audit log.',
      changeButton('POST /admin/policies', 'New policy', () => edit(null), { class: 'primary' })),
    h('div', { class: 'toolbar' }, h('div', { class: 'grow' }, field('Search', search)), field('State', state), field('Source', source)),
    card('All policies', {}, list));
  load();
}
