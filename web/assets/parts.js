// Parts that several pages use: cards, tables, dialogs, notes, and the loop that refreshes a page.

import { refusalOf } from './api.js';
import { h, newId, show } from './dom.js';
import { count } from './text.js';

export function pageHead(title, about, ...actions) {
  return h('div', { class: 'page-head' },
    h('div', null, h('h1', { tabindex: '-1' }, title), about && h('p', null, about)),
    actions.length > 0 && h('div', { class: 'buttons' }, actions));
}

export function card(title, { className = '', note, aside } = {}, ...children) {
  const id = newId('card');
  return h('section', { class: `card ${className}`, 'aria-labelledby': id },
    h('div', { class: 'card-head' }, h('h2', { id }, title), note && h('span', { class: 'muted small' }, note),
      aside && h('span', { class: 'spacer' }), aside),
    children);
}

export function figure(label) {
  const value = h('dd', null, '–');
  const box = h('div', { class: 'figure' }, h('dt', null, label), value);
  return {
    element: box,
    set(text, unit, bad = false) {
      show(value, text, unit && h('small', null, unit));
      box.classList.toggle('bad', bad);
    },
  };
}

export const figures = (...all) => h('dl', { class: 'figures' }, all.map((f) => f.element));

export function message(kind, ...text) {
  return h('div', { class: `message ${kind}`, role: kind === 'bad' ? 'alert' : undefined }, text.map((t) => (typeof t === 'string' ? h('p', null, t) : t)));
}

/** The message shown in place of data that this service does not offer or could not return. */
export function failure(error, what) {
  if (error.missing) return message('', `${what} is not available on this service.`);
  return message('bad', `${what} could not be read: ${error.message}`);
}

export const empty = (text) => h('p', { class: 'empty' }, text);

/**
 * A table. `columns`: [{ title, cell(row), num, actions, head, className }]; roles are written out, since tables that
 * stack on phones would lose them.
 */
export function table(caption, columns, rows, { stack = true } = {}) {
  const body = h('tbody', { role: 'rowgroup' }, rows.map((row) => h('tr', { role: 'row' }, columns.map((c) => {
    const content = c.cell(row);
    if (c.head) return h('th', { scope: 'row', role: 'rowheader' }, content);
    return h('td', { role: 'cell', class: c.num ? 'num' : c.actions ? 'actions' : c.className, 'data-label': c.actions ? undefined : c.title }, content);
  }))));
  return h('div', { class: 'table-scroll', tabindex: stack ? undefined : '0', role: stack ? undefined : 'group', 'aria-label': stack ? undefined : caption },
    h('table', { class: stack ? 'stack' : undefined, role: 'table' },
      h('caption', { class: 'visually-hidden' }, caption),
      h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' },
        columns.map((c) => h('th', { scope: 'col', role: 'columnheader', class: c.num ? 'num' : c.className },
          c.actions ? h('span', { class: 'visually-hidden' }, c.title) : c.title)))),
      body));
}

export function button(text, onclick, attributes = {}) {
  return h('button', { type: 'button', ...attributes, onclick }, text);
}

/** A button for a change by `route`; disabled, with the reason, if this key may not use the route. */
export function changeButton(route, text, onclick, attributes = {}) {
  const refusal = refusalOf(route);
  return button(text, onclick, refusal ? { ...attributes, disabled: true, title: refusal } : attributes);
}

/** Previous / next under a list. */
export function pager({ from, shown, total, onPrevious, onNext, noun }) {
  const one = noun.replace(/ies$/, 'y').replace(/s$/, '');
  const range = shown === 0 ? `No ${noun}` : total === 1 ? `1 ${one}` :
    `${noun[0].toUpperCase()}${noun.slice(1)} ${count(from + 1)} to ${count(from + shown)}${total === undefined ? '' : ` of ${count(total)}`}`;
  return h('div', { class: 'pager' }, h('span', { role: 'status' }, range), h('span', { class: 'spacer' }),
    (onPrevious || onNext) && [button('Previous', onPrevious, { disabled: !onPrevious, class: 'small' }),
      button('Next', onNext, { disabled: !onNext, class: 'small' })]);
}

// --- notes --------------------------------------------------------------------------------------

export function toast(text, kind = '') {
  const note = h('div', { class: `toast ${kind}` }, text);
  document.getElementById('toasts').append(note);
  setTimeout(() => note.remove(), kind === 'bad' ? 9000 : 5000);
}

// --- dialogs ------------------------------------------------------------------------------------

/**
 * Opens a dialog and returns the value it was closed with. `build(close)` returns its content. The browser
 * keeps the focus inside and restores it afterwards.
 */
export function dialog(title, build, { narrow = false, wide = false } = {}) {
  return new Promise((resolve) => {
    const id = newId('dialog');
    const element = h('dialog', { 'aria-labelledby': id, class: narrow ? 'narrow' : wide ? 'wide' : undefined });
    let result;
    const close = (value) => {
      result = value;
      element.close();
    };
    element.append(h('div', { class: 'dialog-body' }, h('h2', { id }, title), build(close)));
    element.addEventListener('close', () => {
      element.remove();
      resolve(result);
    });
    document.body.append(element);
    element.showModal();
  });
}

/** Asks for confirmation of a change. True if the user agrees. The safe button has the focus. */
export async function confirm(title, text, yes, { danger = true } = {}) {
  return await dialog(title, (close) => [
    h('div', null, [text].flat().map((t) => (typeof t === 'string' ? h('p', null, t) : t))),
    h('div', { class: 'buttons' },
      button('Cancel', () => close(false), { autofocus: true }),
      button(yes, () => close(true), { class: danger ? 'primary danger' : 'primary' })),
  ], { narrow: true }) === true;
}

/** Runs a change and shows its result; true if it succeeded. */
export async function attempt(change, done) {
  try {
    await change();
    toast(done);
    return true;
  } catch (error) {
    toast(error.message, 'bad');
    return false;
  }
}

// --- freshness ----------------------------------------------------------------------------------

/**
 * Calls `task(signal)` now and `every` ms after it ended, while the page is open and visible. If the service
 * fails, waits longer each time (up to 30 s), and stops if the endpoint is missing: this limits the load of open pages.
 */
export function keepFresh(signal, every, task) {
  let failures = 0;
  const round = async () => {
    if (signal.aborted) return;
    if (!document.hidden) {
      try {
        await task(signal);
        failures = 0;
      } catch (error) {
        if (signal.aborted || error.missing) return;
        failures += 1;
      }
    }
    const timer = setTimeout(round, Math.min(every * 2 ** failures, 30000));
    signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
  };
  return round();
}
