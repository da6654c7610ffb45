import { h } from './dom.js';
import { pieces } from './text.js';

/** A name that somebody chose, shown for what it is: isolated, shortened, unseen marks visible. */
export function name(text, longest) {
  return h('bdi', { class: 'key', dir: 'ltr' },
    pieces(text, longest).map(([piece, odd]) => (odd ? h('span', { class: 'odd' }, piece) : piece)));
}
