import { h } from './dom.js';
import { pieces } from './text.js';

/** The text with places to break a line: after what separates its parts, rather than within one. */
function breakable(text) {
  return text.split(/(?<=[|/,;=&:])(?=[^|/,;=&:])/).flatMap((part, i) => (i > 0 ? [h('wbr'), part] : [part]));
}

/** A name that somebody chose, shown for what it is: isolated, shortened, unseen marks visible. */
export function name(text, longest) {
  return h('bdi', { class: 'key', dir: 'ltr' },
    pieces(text, longest).map(([piece, odd]) => (odd ? h('span', { class: 'odd' }, piece) : breakable(piece))));
}
