// Overrides: they switch a policy of a file between shadow mode and enforced without changing the file.

import { del, post, put } from './api.js';
import { field, h, show } from './dom.js';
import { attempt, button, confirm, dialog, message } from './parts.js';
import { pathOf } from './policy_form.js';
import { moment, plainName, zone } from './text.js';

const keyOf = (policy) => `${policy.domain}/${policy.policyKey}`;
const shown = (policy) => `“${plainName(policy.policyKey)}”`;

/** Whether the override differs from the file, so that removing it switches to the other state. */
export const goesBack = (policy) => policy.override !== undefined && policy.shadowInFile !== policy.shadow;

/** The text under the pill: that an override applies, and until when. */
export function byOverride({ override }) {
  if (!override) return null;
  return h('div', { class: 'muted small' }, 'by override', override.expiresAt && ` until ${moment(override.expiresAt)}`);
}

/** Asks for an end time and makes the override; true if it was made. */
export function overrideFile(policy) {
  const shadow = !policy.shadow;
  const until = h('input', { type: 'datetime-local', step: 1 });
  const problem = h('div', { 'aria-live': 'polite' });
  const save = async (close) => {
    const date = new Date(until.value);
    if (until.value && !(date > new Date())) return show(problem, message('bad', 'Enter a time in the future, or none.'));
    const body = { policyKey: keyOf(policy), type: 'OVERRIDE', domain: policy.domain, shadow, ...(until.value && { expiresAt: date.toISOString() }) };
    const send = () => (policy.override ? put(pathOf(policy.override), body) : post('/admin/policies', body));
    return close(await attempt(send, shadow ? 'Now in shadow mode.' : 'Enforced.'));
  };
  return dialog(shadow ? 'Put this policy in shadow mode?' : 'Enforce this policy?', (close) => h('form', { novalidate: true, onsubmit: (event) => {
    event.preventDefault();
    save(close);
  } },
  h('p', null, shadow ? `${shown(policy)} keeps counting but refuses no one.` : `${shown(policy)} starts to refuse requests at once.`),
  h('p', null, 'It is defined in ', h('code', null, plainName(policy.definedIn ?? 'a file')), ', which stays unchanged: an override applies until it is removed. To make the change permanent, write in the file ',
    h('code', null, `shadow: ${shadow}`), '.'),
  field('Ends', until, `${zone}. Empty: until it is removed`), problem,
  h('div', { class: 'buttons' }, button('Cancel', () => close(false), { autofocus: true }),
    h('button', { type: 'submit', class: 'primary' }, shadow ? 'Shadow' : 'Enforce'))), { narrow: true });
}

/** Removes the override, so that the file applies again; true if it was removed. */
export async function backToFile(policy) {
  const becomes = policy.shadowInFile ? 'keeps counting but refuses no one' : 'refuses requests';
  if (!await confirm('Back to what the file says?', `${shown(policy)} ${becomes}, as ${plainName(policy.definedIn ?? 'its file')} has it.`, 'Back to the file', { danger: false })) return false;
  return attempt(() => del(pathOf(policy.override)), 'The file applies again.');
}
