// Audit: who changed what, when, from what to what; and undoing changes.

import { get, path, post } from '../api.js';
import { h, select, show } from '../dom.js';
import { diff } from '../diff.js';
import { newEnd } from '../end.js';
import { name } from '../name.js';
import { attempt, card, changeButton, confirm, empty, failure, pageHead, pager, table } from '../parts.js';
import { count, moment, plainName, zone } from '../text.js';

const PER_PAGE = 50;
/** Claims, sends and returned permits are operations: there are many, and no one decided on them. */
const VIEWS = [
  ['except=slot.claim,notify.send,check', 'Changes'],
  ['action=policy', 'Changes of policies'],
  ['', 'Everything, with claims, sends and refunds'],
];
const fromFile = (entry) => entry.target.startsWith('file:');
const ofPolicy = (entry) => entry.action.startsWith('policy.');
/** Only changes of objects that are recorded in full can be undone; replays, and resets of usage and caches, cannot. */
const undoable = (entry) => (ofPolicy(entry) ? entry.target.startsWith('policy:') : /^(slots|notify|notify_channel|preferences)\.(config|undo)$/.test(entry.action)) && (entry.before !== null || entry.after !== null);
/** The role policies undoes changes of policies only; what others need is what such a change needs. */
const CHANGES = { slots: 'POST /admin/rate-limit/config', notify: 'POST /api/config', notify_channel: 'PUT /api/config/{userId}/channels/{channel}', preferences: 'PUT /api/preferences/{userId}' };
const undoRoute = (entry) => CHANGES[entry.action.split('.')[0]] ?? 'POST /admin/audit/{id}/undo';
/** The entries (newest first) that a later undo reverted, unless that undo was itself undone. */
function takenBack(entries) {
  const back = new Map();
  for (const entry of entries) if (entry.undoes && !back.has(entry.id)) back.set(entry.undoes, entry.id);
  return back;
}
/**
 * The change of a target that can be undone next, of its entries, newest first: an undo and the change that it undid
 * cancel out, as in the service (undo_order.h).
 */
function inEffect(entries) {
  for (let i = 0; i >= 0 && i < entries.length; ++i) {
    if (!entries[i].undoes) return entries[i].id;
    i = entries.findIndex((e) => e.id === entries[i].undoes);
    if (i < 0) break;
  }
  return undefined;
}
/** The change that has to be undone before this one, if any. `entries`: all from the newest on. */
function undoFirst(entry, entries) {
  const same = entries.filter((e) => e.target === entry.target);
  const next = inEffect(same);
  if (next === undefined || entry.id === next || entry.id === same[0].id) return undefined;
  return next > entry.id ? next : same[0].id;
}
/** "policy:user-1" → "user-1": the action says what it is. */
const targetName = (entry) => entry.target.slice(entry.target.indexOf(':') + 1);

/** The objects of an action on several: messages, or buckets (for a policy, `buckets` is a number). */
const partsOf = ({ action, after }) => (action === 'key.reset' ? after?.buckets?.map((b) => b.bucket) : after?.eventIds) ?? [];
/** The target of an action on several is its path; its parts say more. A tally of callers has none. */
function which(entry) {
  const target = targetName(entry);
  const parts = partsOf(entry);
  if (target.startsWith('/') && parts.length > 0) return parts.length === 1 ? name(parts[0], 60) : `${count(parts.length)} messages`;
  return target === '' ? '–' : name(target, 60);
}
function versions({ before, after }) {
  const was = before?.version;
  const is = after?.version;
  if (was === undefined && is === undefined) return null;
  return h('div', { class: 'muted small' }, `version ${was === undefined ? is : is === undefined ? was : `${was} → ${is}`}`);
}
function changed(entry) {
  const parts = partsOf(entry);
  if (parts.length === 0) return [diff(entry.before, entry.after), versions(entry)];
  const list = h('ul', null, parts.map((part) => h('li', null, name(part, 80))));
  return parts.length <= 3 ? list : h('details', null, h('summary', null, `${count(parts.length)} of them`), list);
}

export function render(root, { signal }) {
  const list = h('div', null, empty('Loading…'));
  const view = select(VIEWS, VIEWS[0][0], { 'aria-label': 'Show', onchange: () => { befores = ['']; load(); } });
  const pages = []; // the entries of each page up to the one that is shown
  root.append(pageHead('Audit', `Every change, newest first: who, when, from what, to what. Times are in ${zone}.`, view), card('Changes', {}, list));
  let befores = [''];

  async function undo(entry) {
    const end = await newEnd(entry.before);
    if (end === undefined) return;
    const question = entry.undoes ? `Make change ${entry.undoes} again?` : 'Undo this change?';
    if (!await confirm(question, [`“${plainName(targetName(entry))}” becomes what it was before ${moment(entry.at)}, at once.`, 'The undo is also recorded as a change.'], entry.undoes ? 'Redo' : 'Undo', { danger: false })) return;
    if (await attempt(() => post(path`/admin/audit/${String(entry.id)}/undo`, Object.keys(end).length > 0 ? end : undefined), 'Undone.')) {
      befores = [''];
      load();
    }
  }

  async function load() {
    const before = befores.at(-1);
    try {
      const answer = await get(`/admin/audit?${new URLSearchParams({ limit: String(PER_PAGE), ...(before && { before }) })}&${view.value}`, signal);
      const entries = answer.changes;
      pages.splice(befores.length - 1, Infinity, entries);
      const newest = pages.flat();
      const back = takenBack(newest);
      function undoButton(e) {
        const first = undoFirst(e, newest);
        return changeButton(undoRoute(e), e.undoes ? 'Redo' : 'Undo', () => undo(e), {
          class: 'small', 'aria-label': `${e.undoes ? 'Redo what was undone by' : 'Undo'} ${plainName(e.action, 40)} of ${plainName(targetName(e), 60)}`,
          ...(first !== undefined && { disabled: true, title: `Undo change ${first} first` }),
        });
      }
      if (entries.length === 0 && befores.length === 1) return show(list, empty('Nothing has been changed yet.'));
      show(list, entries.length === 0 ? empty('There is nothing earlier.') : table('Changes, newest first', [
        { title: 'Change', num: true, cell: (e) => String(e.id) },
        { title: 'When', cell: (e) => moment(e.at) },
        { title: 'Who', cell: (e) => name(e.who || '–', 48) },
        { title: 'What', cell: (e) => [h('span', { class: 'nowrap' }, name(e.action, 40)), e.undoes && h('span', { class: 'muted small' }, ` of ${e.undoes}`)] },
        { title: 'Which', head: true, cell: which },
        { title: 'Changed', cell: changed },
        { title: 'Actions', actions: true, cell: (e) => (fromFile(e) ? h('span', { class: 'muted small' }, 'edit the file') : back.has(e.id) ? h('span', { class: 'muted small' }, `undone by ${back.get(e.id)}`) : undoable(e) && undoButton(e)) },
      ], entries), pager({
        noun: 'changes', from: (befores.length - 1) * PER_PAGE, shown: entries.length,
        onPrevious: befores.length > 1 ? () => { befores.pop(); load(); } : null,
        onNext: answer.next ? () => { befores.push(String(answer.next)); load(); } : null,
      }));
    } catch (error) {
      if (!signal.aborted) show(list, failure(error, 'The audit log'));
    }
  }
  load();
}
