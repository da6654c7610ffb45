import { h } from './dom.js';
import { pieces } from './text.js';

/** The text with allowed line breaks after the separators of its parts rather than within a part. */
function breakable(text) {
  return text.split(/(?<=[|/,;=&:])(?=[^|/,;=&:])/).flatMap((part, i) => (i > 0 ? [h('wbr'), part] : [part]));
}

/** A name chosen by a client, shown safely: isolated, shortened, with invisible characters made visible. */
export function name(text, longest) {
  return h('bdi', { class: 'key', dir: 'ltr' },
    pieces(text, longest).map(([piece, odd]) => (odd ? h('span', { class: 'odd' }, piece) : breakable(piece))));
}
