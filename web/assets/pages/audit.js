// Audit: who changed what, when, from what to what; and back again.

import { get, path, post } from '../api.js';
import { h, show } from '../dom.js';
import { diff } from '../diff.js';
import { name } from '../name.js';
import { attempt, button, card, confirm, empty, failure, pageHead, pager, table } from '../parts.js';
import { moment, plainName } from '../text.js';

const PER_PAGE = 50;
const entriesOf = (answer) => (Array.isArray(answer) ? answer : [answer?.entries, answer?.audit, answer?.changes, answer?.items].find(Array.isArray) ?? []);

export function render(root, { signal }) {
  const list = h('div', null, empty('Reading…'));
  root.append(pageHead('Audit', 'Every change of a policy or a key, newest first.'), card('Changes', {}, list));
  let befores = [''];

  async function undo(entry) {
    if (!await confirm('Undo this change?', [`“${plainName(entry.key ?? '')}” becomes what it was before ${moment(entry.at)}, at once.`, 'The undoing is a change of its own and is written down too.'], 'Undo', { danger: false })) return;
    if (await attempt(() => post(path`/admin/audit/${String(entry.id)}/undo`), 'Undone.')) {
      befores = [''];
      load();
    }
  }

  async function load() {
    const before = befores.at(-1);
    try {
      const entries = entriesOf(await get(`/admin/audit?${new URLSearchParams({ limit: String(PER_PAGE), ...(before && { before }) })}`, signal)).slice(0, PER_PAGE);
      if (entries.length === 0 && befores.length === 1) return show(list, empty('Nothing has been changed yet.'));
      show(list, entries.length === 0 ? empty('There is nothing earlier.') : table('Changes, newest first', [
        { title: 'When', cell: (e) => moment(e.at) },
        { title: 'Who', cell: (e) => name(e.who || '–', 48) },
        { title: 'What', cell: (e) => String(e.action ?? '–').slice(0, 40) },
        { title: 'Which', head: true, cell: (e) => name(e.key ?? '', 60) },
        { title: 'Changed', cell: (e) => diff(e.before, e.after) },
        { title: 'Actions', actions: true, cell: (e) => (e.undoable === false || e.undone || e.action === 'reset' ? '' :
          button('Undo', () => undo(e), { class: 'small', 'aria-label': `Undo ${String(e.action ?? 'change').slice(0, 40)} of ${plainName(e.key ?? '', 60)}` })) },
      ], entries), pager({
        noun: 'changes', from: (befores.length - 1) * PER_PAGE, shown: entries.length,
        onPrevious: befores.length > 1 ? () => { befores.pop(); load(); } : null,
        onNext: entries.length === PER_PAGE ? () => { befores.push(String(entries.at(-1).id)); load(); } : null,
      }));
    } catch (error) {
      if (!signal.aborted) show(list, failure(error, 'The audit log'));
    }
  }
  load();
}
