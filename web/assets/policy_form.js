// The form that creates or changes a policy.

import { algorithms, algorithmOf } from './algorithms.js';
import { path, post, put } from './api.js';
import { field, h, select, show, tick } from './dom.js';
import { button, dialog, message, toast } from './parts.js';
import { plainName, zone } from './text.js';

const FIELDS = ['policyKey', 'type', 'capacity', 'refillRate', 'windowSeconds', 'buckets', 'domain', 'match', 'shadow',
  'unlimited', 'onStoreError', 'mode', 'store', 'overdraw', 'charge', 'cost', 'expiresAt'];

/** The fields of a policy that may be sent back. */
export function bodyOf(policy) {
  return Object.fromEntries(FIELDS.filter((f) => policy[f] !== undefined && policy[f] !== null && policy[f] !== '').map((f) => [f, policy[f]]));
}

/** The URL to change a policy, which fails if the policy was changed since it was read. */
export const pathOf = (policy) => `${path`/admin/policies/${policy.policyKey}`}?${new URLSearchParams({ version: String(policy.version) })}`;

/** "user = *" lines → { user: '*' }; throws an error with a message for the user. */
function readMatch(text) {
  const match = {};
  for (const line of text.split('\n').filter((l) => l.trim() !== '')) {
    const at = line.indexOf('=');
    if (at < 1) throw new Error(`Match: write “name = value” on each line, not “${plainName(line, 40)}”.`);
    match[line.slice(0, at).trim()] = line.slice(at + 1).trim();
  }
  return match;
}

function localTime(iso) {
  const date = new Date(iso);
  return Number.isNaN(date.getTime()) ? '' : new Date(date.getTime() - date.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
}

/** Whether a policy sets rarely used fields: then that part of the form is open. */
function hasRare(policy) {
  return (policy.cost ?? 1) !== 1 || (policy.onStoreError ?? 'local') !== 'local' || (policy.mode ?? 'exact') !== 'exact'
    || (policy.charge ?? 'all_or_none') !== 'all_or_none' || policy.overdraw === true;
}

/** Opens the form; true if the policy was saved. `policy` null: a new one, prefilled from `proposed`. */
export function editPolicy(policy, proposed = {}) {
  const made = policy ?? { type: 'TOKEN_BUCKET', capacity: 100, refillRate: 10, windowSeconds: 60, buckets: 10, onStoreError: 'local', cost: 1, ...proposed };
  const number = (value, max) => h('input', { type: 'number', min: 1, max, step: 1, value: String(value ?? ''), inputmode: 'numeric', required: true });
  const input = {
    key: h('input', { value: made.policyKey ?? '', autocomplete: 'off', spellcheck: 'false', required: true, readonly: policy !== null, autofocus: policy === null }),
    type: select(algorithms().map((a) => [a.type, a.title]), made.type),
    capacity: number(made.capacity),
    refillRate: number(made.refillRate),
    windowSeconds: number(made.windowSeconds),
    buckets: number(made.buckets ?? 10),
    domain: h('input', { value: made.domain ?? '', placeholder: 'default', autocomplete: 'off', spellcheck: 'false' }),
    match: h('textarea', { rows: 2, spellcheck: 'false', placeholder: 'user = *', class: 'mono' }),
    cost: number(made.cost ?? 1, 1000000),
    onStoreError: select([['local', 'local share'], ['allow', 'allow'], ['deny', 'refuse']], made.onStoreError),
    mode: select([['exact', 'exact'], ['leased', 'leased'], ['rate_leased', 'rate leased']], made.mode ?? 'exact'),
    charge: select([['all_or_none', 'all or none'], ['reports', 'all or none, except reports'], ['each', 'each on its own'], ['always', 'always']], made.charge ?? 'all_or_none'),
    overdraw: h('input', { checked: made.overdraw === true }),
    expiresAt: h('input', { type: 'datetime-local', step: 1, value: made.expiresAt ? localTime(made.expiresAt) : '' }),
    shadow: h('input', { checked: made.shadow === true }),
    unlimited: h('input', { checked: made.unlimited === true }),
  };
  input.match.value = Object.entries(made.match ?? {}).map(([k, v]) => `${k} = ${v}`).join('\n');
  const boxes = {
    capacity: field('Capacity', input.capacity, proposed.match
      ? 'Maximum permits. The count starts at zero: what was used under the other policy does not count.' : 'Maximum permits'),
    refillRate: field('Refill', input.refillRate, 'Permits a second'),
    windowSeconds: field('Window', input.windowSeconds, 'Seconds'),
    buckets: field('Buckets', input.buckets, 'Parts of the window'),
  };
  const type = field('Algorithm', input.type);
  const problem = h('div', { 'aria-live': 'polite' });

  function fit() {
    const used = input.unlimited.checked ? [] : algorithmOf(input.type.value)?.fields ?? [];
    type.hidden = input.unlimited.checked;
    for (const [name, box] of Object.entries(boxes)) box.hidden = !used.includes(name);
  }
  input.type.addEventListener('change', fit);
  input.unlimited.addEventListener('change', fit);
  fit();

  function read() {
    const match = readMatch(input.match.value);
    const body = {
      policyKey: input.key.value, type: input.type.value, capacity: Number(input.capacity.value), cost: Number(input.cost.value),
      shadow: input.shadow.checked, unlimited: input.unlimited.checked, onStoreError: input.onStoreError.value,
      mode: input.mode.value, store: policy?.store, overdraw: input.overdraw.checked, charge: input.charge.value,
    };
    const used = algorithmOf(body.type)?.fields ?? [];
    for (const name of ['refillRate', 'windowSeconds', 'buckets']) {
      if (used.includes(name)) body[name] = Number(input[name].value);
    }
    // A match without entries applies to every request and not to a key.
    const every = policy?.match !== undefined && Object.keys(policy.match).length === 0;
    if (every || Object.keys(match).length > 0) Object.assign(body, { match, domain: input.domain.value || undefined });
    if (input.expiresAt.value) body.expiresAt = new Date(input.expiresAt.value).toISOString();
    if (policy === null && body.policyKey === '') throw new Error('Give the policy a name.');
    return bodyOf(body);
  }

  return dialog(policy ? `Edit ${plainName(policy.policyKey, 60)}` : proposed.policyKey ? 'New exception' : 'New policy', (close) => {
    const save = h('button', { type: 'submit', class: 'primary' }, policy ? 'Save' : 'Create');
    return h('form', { novalidate: true, onsubmit: async (event) => {
      event.preventDefault();
      save.disabled = true;
      try {
        const body = read();
        const saved = policy ? await put(pathOf(policy), body) : await post('/admin/policies', body);
        toast([policy ? 'Saved.' : 'Created.', ...(saved?.warnings ?? []).map((w) => `Warning: ${w}.`)].join(' '));
        close(true);
      } catch (error) {
        show(problem, message('bad', error.message));
      }
      save.disabled = false;
    } },
    h('div', { class: 'fields' },
      h('div', { class: 'wide' }, field('Name or key', input.key, 'Without a match below, the policy is for checks of exactly this key.')),
      type, boxes.capacity, boxes.refillRate, boxes.windowSeconds, boxes.buckets,
      h('div', { class: 'wide' }, field('Match', input.match, 'One entry a line; * gives each value its own bucket.')),
      field('Domain', input.domain, 'For policies with a match'),
      h('div', { class: 'two' }, field('Ends', input.expiresAt, `${zone}. Empty: never`)),
      h('div', { class: 'wide' }, tick('Shadow', input.shadow, 'Counts and reports, but refuses no one.')),
      h('div', { class: 'wide' }, tick('Unlimited', input.unlimited, 'Requests that it matches are never limited.')),
      h('details', { class: 'wide', open: hasRare(made) },
        h('summary', {}, 'More: cost, store failures, leases, charging'),
        h('div', { class: 'fields' },
          field('Cost', input.cost, 'Permits per check'),
          field('If the store fails', input.onStoreError),
          field('Mode', input.mode, 'Leased: nodes take permits in advance. Rate leased: nodes reserve a share of a token bucket\'s rate.'),
          field('Charge', input.charge, 'When another policy refuses'),
          h('div', { class: 'wide' }, tick('Overdraw', input.overdraw, 'Counts every cost and refuses while in debt.')))),
      h('div', { class: 'wide' }, problem)),
    h('div', { class: 'buttons' }, button('Cancel', () => close(false)), save));
  });
}
