// What changed between two versions of something, field by field.

import { h } from './dom.js';
import { moment, plainName } from './text.js';

function parsed(value) {
  if (typeof value !== 'string') return value ?? null;
  try {
    return value === '' ? null : JSON.parse(value);
  } catch {
    return { value };
  }
}

/** As JSON writes a time: the page shows all times in the same zone. */
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?Z$/;

function write(value) {
  if (typeof value === 'string') return INSTANT.test(value) ? moment(value) : plainName(value, 120);
  return plainName(JSON.stringify(value), 120);
}
const IGNORED = new Set(['id', 'version', 'createdAt', 'updatedAt']);

/** The differences: [[field, before, after], …]. */
export function changes(before, after) {
  const a = parsed(before) ?? {};
  const b = parsed(after) ?? {};
  return [...new Set([...Object.keys(a), ...Object.keys(b)])]
    .filter((key) => !IGNORED.has(key) && JSON.stringify(a[key]) !== JSON.stringify(b[key]))
    .map((key) => [key, a[key], b[key]]);
}

/** The default values of a policy, and fields that its algorithm does not use. */
const USUAL = { shadow: false, unlimited: false, cost: 1, onStoreError: 'local' };
function isUsual(key, value, type) {
  if (type === 'OVERRIDE') return false;
  if (key === 'refillRate') return type !== 'TOKEN_BUCKET';
  if (key === 'windowSeconds') return type === 'TOKEN_BUCKET';
  return key === 'policyKey' || USUAL[key] === value;
}

export function diff(before, after) {
  const found = changes(before, after);
  if (before && after) return diffOf(found);
  // New or deleted objects have many fields: for a policy show those that matter, for others the first.
  const { policyKey, type } = parsed(before || after) ?? {};
  return policyKey ? diffOf(found.filter(([key, was, is]) => !isUsual(key, was ?? is, type)), 8) : diffOf(found, 5);
}

/** The same for a result of `changes`. */
export function diffOf(found, most = 12) {
  if (found.length === 0) return h('span', { class: 'muted' }, 'nothing');
  return h('div', { class: 'diff' }, found.slice(0, most).map(([key, was, is]) => h('div', null, `${plainName(key, 40)} `,
    was !== undefined && h('del', { class: 'gone' }, write(was)), was !== undefined && is !== undefined && ' → ',
    is !== undefined && h('ins', { class: 'come' }, write(is)))),
  found.length > most && h('div', { class: 'muted' }, `and ${found.length - most} more`));
}
