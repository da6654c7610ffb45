// Starts the dashboard: signs in, selects the page by the fragment of the URL, remembers the theme.

import { ApiError, get, hasKey, refusalOf, setAccess, setKey, whenUnauthorized } from './api.js';
import { field, h, s, show } from './dom.js';
import { button, message } from './parts.js';
import * as audit from './pages/audit.js';
import * as keys from './pages/keys.js';
import * as notify from './pages/notify.js';
import * as overview from './pages/overview.js';
import * as policies from './pages/policies.js';
import * as slots from './pages/slots.js';

const PAGES = [
  ['overview', 'Overview', overview],
  ['policies', 'Policies', policies],
  ['keys', 'Keys', keys],
  ['slots', 'Slots', slots],
  ['notify', 'Notify', notify],
  ['audit', 'Audit', audit],
];

const main = document.getElementById('main');
const top = document.querySelector('.top');
const health = document.getElementById('health');
let leave = new AbortController();
let signedIn = false;

// --- theme --------------------------------------------------------------------------------------

const themeButton = document.getElementById('theme');
const dark = matchMedia('(prefers-color-scheme: dark)');
let chosenTheme = null;

function paintTheme() {
  const theme = chosenTheme ?? (dark.matches ? 'dark' : 'light');
  document.documentElement.dataset.theme = theme;
  const other = theme === 'dark' ? 'light' : 'dark';
  themeButton.setAttribute('aria-label', `Use the ${other} theme`);
  themeButton.title = `Use the ${other} theme`;
  show(themeButton, s('svg', { viewBox: '0 0 24 24', 'aria-hidden': 'true' }, theme === 'dark'
    ? [s('circle', { cx: 12, cy: 12, r: 4 }), s('path', { d: 'M12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6 7 7M17 17l1.4 1.4M18.4 5.6 17 7M7 17l-1.4 1.4' })]
    : s('path', { d: 'M20 14.5A8 8 0 1 1 9.5 4a6.5 6.5 0 0 0 10.5 10.5Z' })));
}
themeButton.addEventListener('click', () => {
  chosenTheme = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
  paintTheme();
});
dark.addEventListener('change', paintTheme);
paintTheme();

// --- pages --------------------------------------------------------------------------------------

/** "#/keys?key=user-1" → ['keys', URLSearchParams]. */
function place() {
  const [page, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  return [page || 'overview', new URLSearchParams(query)];
}

function drawNav(current) {
  show(document.getElementById('nav'), PAGES.map(([id, title]) => h('li', null,
    h('a', { href: `#/${id}`, 'aria-current': id === current ? 'page' : undefined }, title))));
}

function openPage({ focus = true } = {}) {
  if (!signedIn) return;
  leave.abort();
  leave = new AbortController();
  document.querySelectorAll('dialog').forEach((d) => d.close());
  const [id, query] = place();
  const found = PAGES.find(([name]) => name === id) ?? PAGES[0];
  drawNav(found[0]);
  document.title = `${found[1]} · Weir`;
  const root = h('div');
  show(main, root);
  found[2].render(root, { query, signal: leave.signal });
  if (focus) (main.querySelector('h1') ?? main).focus();
  scrollTo(0, 0);
}
addEventListener('hashchange', () => {
  // '#main' is the target of the skip link, not a page.
  if (location.hash !== '#main') openPage();
});

// --- signing in ---------------------------------------------------------------------------------

const HEALTH = { UP: ['good', 'Up'], DEGRADED: ['warn', 'Degraded'], DRAINING: ['bad', 'Draining'] };

function showHealth(status) {
  const [look, text] = HEALTH[status?.status] ?? ['bad', 'Unreachable'];
  health.className = `pill ${look}`;
  health.title = status?.down?.length ? `Down: ${status.down.join(', ')}` : '';
  show(health, text);
}

async function watchHealth() {
  if (signedIn && !document.hidden) {
    try {
      showHealth(await get('/admin/status'));
    } catch (error) {
      if (error.status === 0) showHealth(null);
    }
  }
  setTimeout(watchHealth, 5000);
}

/** Says in one place what this key may not change; each disabled button gives its own reason, too. */
function showAccess() {
  const [resets, policies] = ['POST /admin/reset', 'POST /admin/policies'].map((route) => !refusalOf(route));
  const text = !policies ? (resets ? 'No policy changes' : 'Read only') : resets ? '' : 'Policy changes only';
  const refused = { 'Read only': 'anything', 'No policy changes': 'policies', 'Policy changes only': 'anything but policies' }[text];
  const pill = document.getElementById('access');
  pill.hidden = text === '';
  pill.title = `This key may not change ${refused}: the buttons for it are disabled.`;
  show(pill, text);
}

async function enter() {
  const status = await get('/admin/status');
  setAccess(await get('/admin/routes').catch(() => null));
  signedIn = true;
  top.hidden = false;
  showAccess();
  document.getElementById('sign-out').hidden = !hasKey();
  showHealth(status);
  openPage({ focus: false });
}

function signOut(text) {
  setKey('');
  signedIn = false;
  leave.abort();
  top.hidden = true;
  document.querySelectorAll('dialog').forEach((d) => d.close());
  signIn(text);
}

function signIn(text) {
  document.title = 'Sign in · Weir';
  const input = h('input', { type: 'password', autocomplete: 'off', required: true, spellcheck: 'false', autofocus: true });
  const problem = h('div', { 'aria-live': 'polite' }, text && message('', text));
  const submit = h('button', { class: 'primary', type: 'submit' }, 'Sign in');
  const form = h('form', { novalidate: true, onsubmit: async (event) => {
    event.preventDefault();
    const key = input.value.trim();
    if (!key) {
      show(problem, message('bad', 'Enter a key.'));
      input.focus();
      return;
    }
    submit.disabled = true;
    setKey(key);
    try {
      await enter();
    } catch (error) {
      setKey('');
      show(problem, message('bad', error.status === 401 ? 'This key is not valid.' : error.message));
      input.focus();
      input.select();
    }
    submit.disabled = false;
  } }, field('Key', input, 'One of admin.keys, or a key with the role read, operate or admin. It is kept only in this page’s memory; after a reload, enter it again.'), problem, submit);
  show(main, h('div', { class: 'sign-in' }, h('div', { class: 'card' },
    h('div', null,
      s('svg', { class: 'mark', viewBox: '0 0 32 32', 'aria-hidden': 'true' },
        s('path', { class: 'brand-water', d: 'M3 11c4 0 4-4 8-4s4 4 8 4 4-4 8-4' }),
        s('path', { class: 'brand-bar', d: 'M7 16v10M13 16v10M19 16v10M25 16v10' })),
      h('h1', null, 'Sign in to Weir')), form)));
  input.focus();
}

whenUnauthorized(() => { if (signedIn) signOut('The key is no longer accepted. Sign in again.'); });
document.getElementById('sign-out').addEventListener('click', () => signOut());

async function start() {
  try {
    await enter();
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) signIn();
    else {
      show(main, h('div', { class: 'sign-in' }, h('h1', null, 'Weir'), message('bad', error.message), button('Try again', start, { class: 'primary' })));
    }
  }
}

start();
watchHealth();
