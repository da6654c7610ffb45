// A policy of a file goes from trial to enforced and back by an override: its file stays as it is.

import { del, path, post, put } from './api.js';
import { field, h, show } from './dom.js';
import { attempt, button, confirm, dialog, message } from './parts.js';
import { moment, plainName } from './text.js';

const keyOf = (policy) => `${policy.domain}/${policy.policyKey}`;
const shown = (policy) => `“${plainName(policy.policyKey)}”`;

/** Whether the override says what the file does not, so that taking it back is the way to the other state. */
export const goesBack = (policy) => policy.override !== undefined && policy.shadowInFile !== policy.shadow;

/** The pill's companion: who says so, and until when. */
export function byOverride({ override }) {
  if (!override) return null;
  return h('div', { class: 'muted small' }, 'by override', override.expiresAt && ` until ${moment(override.expiresAt)}`);
}

/** Asks until when, and overrides; true if it was done. */
export function overrideFile(policy) {
  const shadow = !policy.shadow;
  const until = h('input', { type: 'datetime-local', step: 1 });
  const problem = h('div', { 'aria-live': 'polite' });
  const save = async (close) => {
    const date = new Date(until.value);
    if (until.value && !(date > new Date())) return show(problem, message('bad', 'Give a time that is still to come, or none.'));
    const body = { policyKey: keyOf(policy), type: 'OVERRIDE', domain: policy.domain, shadow, ...(until.value && { expiresAt: date.toISOString() }) };
    const send = () => (policy.override ? put(path`/admin/policies/${body.policyKey}`, body) : post('/admin/policies', body));
    return close(await attempt(send, shadow ? 'In shadow.' : 'Enforced.'));
  };
  return dialog(shadow ? 'Put this policy in shadow?' : 'Enforce this policy?', (close) => h('form', { novalidate: true, onsubmit: (event) => {
    event.preventDefault();
    save(close);
  } },
  h('p', null, shadow ? `${shown(policy)} goes on counting but refuses nobody.` : `${shown(policy)} begins to refuse requests at once.`),
  h('p', null, 'It stands in ', h('code', null, plainName(policy.definedIn ?? 'a file')), ', which stays as it is: an override has the say until it is taken back. To keep it for good, write there ',
    h('code', null, `shadow: ${shadow}`), '.'),
  field('Ends', until, 'Empty: stays until it is taken back'), problem,
  h('div', { class: 'buttons' }, button('Cancel', () => close(false), { autofocus: true }),
    h('button', { type: 'submit', class: 'primary' }, shadow ? 'Shadow' : 'Enforce'))), { narrow: true });
}

/** Lets the file have the say again; true if it was done. */
export async function backToFile(policy) {
  const becomes = policy.shadowInFile ? 'goes on counting but refuses nobody' : 'refuses requests';
  if (!await confirm('Back to what the file says?', `${shown(policy)} ${becomes}, as ${plainName(policy.definedIn ?? 'its file')} has it.`, 'Back to the file', { danger: false })) return false;
  return attempt(() => del(path`/admin/policies/${keyOf(policy)}`), 'The file has the say again.');
}
