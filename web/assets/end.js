// Asks for a new end when a temporary policy that has ended is restored.

import { field, h, show, tick } from './dom.js';
import { button, dialog, message } from './parts.js';
import { moment, zone } from './text.js';

export const hasEnded = (policy) => Boolean(policy?.expiresAt) && new Date(policy.expiresAt) <= new Date();

const local = (date) => new Date(date.getTime() - date.getTimezoneOffset() * 60000).toISOString().slice(0, 19);

/** {} if the policy has not ended, { expiresAt } as entered, undefined if the dialog was cancelled. */
export function newEnd(policy) {
  if (!hasEnded(policy)) return Promise.resolve({});
  const until = h('input', { type: 'datetime-local', step: 1, value: local(new Date(Date.now() + 3600000)), autofocus: true });
  const stays = h('input', {});
  const problem = h('div', { 'aria-live': 'polite' });
  return dialog('Until when?', (close) => h('form', { novalidate: true, onsubmit: (event) => {
    event.preventDefault();
    if (stays.checked) return close({ expiresAt: null });
    const date = new Date(until.value);
    if (!(date > new Date())) return show(problem, message('bad', 'Enter a time in the future.'));
    return close({ expiresAt: date.toISOString() });
  } },
  h('p', null, `It was temporary and ended ${moment(policy.expiresAt)}.`),
  field('Ends', until, zone), tick('Keep it permanently', stays), problem,
  h('div', { class: 'buttons' }, button('Cancel', () => close()), h('button', { type: 'submit', class: 'primary' }, 'Continue'))), { narrow: true });
}
