// Builds the page. Text only ever becomes a text node, so nothing in a response of the service
// can become markup. (The page's security policy forbids innerHTML as well.)

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'value' || name === 'checked' || name === 'disabled') element[name] = value;
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

/** h('button', { class: 'primary', onclick: save }, 'Save') */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Replaces the content of `element`. */
export function show(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
}

let ids = 0;
export const newId = (prefix) => `${prefix}-${++ids}`;

/** A labelled input, which gets the id that the label points to. */
export function field(label, input, hint) {
  const id = newId('field');
  input.id = id;
  const parts = [h('label', { for: id }, label), input];
  if (hint) {
    input.setAttribute('aria-describedby', `${id}-hint`);
    parts.push(h('span', { class: 'hint', id: `${id}-hint` }, hint));
  }
  return h('div', { class: 'field' }, parts);
}

/** A checkbox with a label. */
export function tick(label, input, hint) {
  const id = newId('tick');
  input.id = id;
  input.type = 'checkbox';
  return h('div', { class: 'check' }, input,
    h('span', null, h('label', { for: id }, label), hint && h('span', { class: 'hint' }, hint)));
}

/** <select> from [value, text] pairs. */
export function select(options, value, attributes) {
  const element = h('select', attributes, options.map(([v, text]) => h('option', { value: v }, text)));
  if (value !== undefined) element.value = value;
  return element;
}
