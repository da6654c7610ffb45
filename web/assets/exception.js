// A temporary limit for one customer: leads from the explanation why it is limited to a policy form.

import { algorithms, readAlgorithms } from './algorithms.js';
import { get, path } from './api.js';
import { toast } from './parts.js';
import { editPolicy } from './policy_form.js';
import { fromBucket } from './text.js';

const HOUR = 3600000;
const BARE = 'key|';
const UNITS = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86400 };

/** "1h30m" → 5400. */
export const secondsOf = (text) => [...(text ?? '').matchAll(/(\d+)(ms|s|m|h|d)/g)].reduce((sum, [, n, unit]) => sum + Number(n) * UNITS[unit], 0);

/** "api/per-user|user:42" → { user: '42' }. */
export function entriesOf(bucket) {
  return Object.fromEntries(bucket.split('|').slice(1).map((entry) => [entry.slice(0, entry.indexOf(':')), entry.slice(entry.indexOf(':') + 1)].map(fromBucket)));
}

/** A match for exactly this text, even if it looks like a pattern. */
const exactly = (value) => (/^[=~^]|\*/.test(value) ? `=${value}` : value);

/** The numbers of "fixed_window(limit=5, window=1m)", twice as generous. */
function twice(quota) {
  const field = (wanted) => new RegExp(`${wanted}=([^,)]+)`).exec(quota)?.[1];
  const [refill, period] = (field('refill') ?? '').split(' per ');
  const algorithm = algorithms().find((one) => quota.startsWith(`${one.name}(`));
  if (!algorithm) return {};
  return {
    type: algorithm.type,
    capacity: 2 * Number(field('capacity') ?? field('limit')),
    ...(refill && { refillRate: Math.max(1, Math.round((2 * Number(refill)) / secondsOf(period))) }),
    ...((field('window') ?? field('lease')) && { windowSeconds: Math.max(1, Math.round(secondsOf(field('window') ?? field('lease')))) }),
    ...(field('buckets') && { buckets: Number(field('buckets')) }),
  };
}

/** Opens the form for an exception from `explained`, a policy of an explanation; true once it is saved. */
export async function makeException(explained) {
  const { bucket, quota, policy: title, source } = explained;
  const bare = bucket.startsWith(BARE);
  const expiresAt = new Date(Date.now() + HOUR).toISOString();
  try {
    await readAlgorithms();
    // A policy of a file is identified by its domain and name, if it has a match.
    const current = await get(path`/admin/policies/${bare || source === 'admin API' ? title : fromBucket(bucket.split('|')[0])}`);
    const changed = { onStoreError: current.onStoreError, cost: current.cost, ...twice(quota), expiresAt };
    if (bare && current.readOnly) return await editPolicy(null, { ...changed, policyKey: fromBucket(bucket.slice(BARE.length)) });
    const general = Object.entries(current.match ?? {}).filter(([, value]) => value === '*');
    if (general.length > 0) {
      const found = entriesOf(bucket);
      const match = { ...current.match, ...Object.fromEntries(general.map(([entry]) => [entry, exactly(found[entry])])) };
      return await editPolicy(null, { ...changed, policyKey: `${title} for ${general.map(([entry]) => found[entry]).join(', ')}`, domain: current.domain, match });
    }
    if (!current.readOnly) return await editPolicy({ ...current, ...changed });
    toast(`The policy has one bucket for all and is defined in ${current.definedIn}: change it there.`, 'bad');
  } catch (error) {
    toast(error.message, 'bad');
  }
  return false;
}
