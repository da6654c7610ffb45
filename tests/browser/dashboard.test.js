// Every page and action of the dashboard, in a real browser, against a real service with 100,000 keys and
// 1,000 policies. Usage: WEIR=program SCREENSHOTS=folder node --test dashboard.test.js

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { KEY, axe, client, shots, startBrowser, startWeir, watchedPage } from './harness.js';

const PAGES = ['overview', 'policies', 'keys', 'slots', 'notify', 'audit'];
const HOSTILE = [
  '<script>window.hit=1</script>', '"><img src=x onerror="window.hit=1">', "'; alert(1); '", 'javascript:alert(1)',
  '\u202egnp.exe\u2066', '{{7*7}}${7*7}', 'a b/c?d#e%41&f=g', '\u0000'.replace('\u0000', 'nul'), 'ünï-çödé-🚰',
];
let weir;
let browser;
let ask;
let page;
let watched;
const shot = shots(process.env.SCREENSHOTS ?? 'screenshots');

async function seed() {
  const policies = Array.from({ length: 1000 }, (_, i) => ({
    key: `customer-${String(i).padStart(4, '0')}`, type: i % 3 ? 'TOKEN_BUCKET' : 'SLIDING_WINDOW', capacity: 50 + i, refillRate: 5, windowSeconds: 60,
    ...(i % 7 === 0 && { shadow: true }), ...(i % 31 === 30 && { unlimited: true }),
  }));
  await Promise.all(Array.from({ length: 20 }, async (_, lane) => {
    for (let i = lane; i < policies.length; i += 20) await ask('POST', '/admin/policies', policies[i]);
  }));
  // A sliding window: a fixed one would end with the hour, perhaps in the middle of a test.
  await ask('POST', '/admin/policies', { key: 'tight', type: 'SLIDING_WINDOW', capacity: 5, windowSeconds: 3600 });
  for (const key of HOSTILE) await ask('POST', '/admin/policies', { key, type: 'TOKEN_BUCKET', capacity: 10, refillRate: 1, shadow: true });
  for (let i = 0; i < 100; i += 1) {
    const checks = Array.from({ length: 1000 }, (_, n) => ({ key: `user-${String(i * 1000 + n).padStart(6, '0')}` }));
    await ask('POST', '/v1/check', { checks });
  }
  await ask('POST', '/v1/check', { checks: Array.from({ length: 400 }, (_, i) => ({ key: i % 2 ? 'tight' : `customer-000${i % 5}` })) });
  await ask('POST', '/v1/check', { checks: [...HOSTILE, 'line\nbreak'].flatMap((key) => Array(60).fill({ key })) });
  await ask('POST', '/v1/check', { checks: [{ key: 'x'.repeat(1024) }] });
  await ask('POST', '/admin/rate-limit/config', { configName: 'payouts', windowSize: 'PT1M', maxPerWindow: 100 });
  await ask('POST', '/admin/rate-limit/config', { configName: HOSTILE[0], windowSize: 'PT1H', maxPerWindow: 10 });
  const requestedTime = new Date().toISOString();
  await ask('POST', '/api/v1/slots/batch', { events: Array.from({ length: 1430 }, (_, i) => ({ eventId: `e${i}`, configName: 'payouts', requestedTime })) });
}

async function signIn(target = page, origin = weir.origin, hash = '') {
  await target.goto(`${origin}/${hash}`);
  await target.getByLabel('Key', { exact: true }).fill(KEY);
  await target.getByRole('button', { name: 'Sign in' }).click();
  await target.locator('.top').waitFor();
}

async function open(id) {
  await page.getByRole('navigation').getByRole('link', { name: new RegExp(`^${id}$`, 'i') }).click();
  await page.locator('h1', { hasText: new RegExp(id, 'i') }).waitFor();
}

/** Playwright's own waiting evaluates text, which the page's security policy forbids. */
async function until(condition) {
  for (const end = Date.now() + 60000; !await page.evaluate(condition);) {
    assert.ok(Date.now() < end, `still not: ${condition}`);
    await new Promise((resolve) => { setTimeout(resolve, 20); });
  }
}

/** Sends checks of these keys until `locator` is visible: the list of busy keys comes from samples. */
async function untilBusy(keys, locator) {
  for (const end = Date.now() + 60000; !await locator.isVisible();) {
    assert.ok(Date.now() < end, `still not in the list: ${locator}`);
    await ask('POST', '/v1/check', { checks: keys.flatMap((key) => Array(Math.floor(900 / keys.length)).fill({ key })) });
    await page.waitForTimeout(250);
  }
}

const dialog = () => page.getByRole('dialog');
const quiet = () => assert.deepEqual(watched.problems.splice(0), []);

before(async () => {
  weir = await startWeir(process.env.WEIR ?? '../../build/dev/weir', '--admin-key', KEY);
  ask = client(weir.origin);
  [browser] = await Promise.all([startBrowser(), seed()]);
  watched = await watchedPage(browser.context);
  watched.expect(/status of 401/);
  page = watched.page;
});
after(async () => {
  await browser?.stop();
  await weir?.stop();
});

describe('the dashboard', { concurrency: false }, () => {
  test('asks for the key, refuses a wrong one, and keeps it nowhere', async () => {
    await page.goto(weir.origin);
    await page.getByLabel('Key', { exact: true }).waitFor();
    assert.deepEqual(await axe(page), []);
    await shot(page, 'sign-in');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Enter a key.').waitFor();
    await page.getByLabel('Key', { exact: true }).fill('wrong');
    await page.keyboard.press('Enter');
    await page.getByText('This key is not valid.').waitFor();
    await signIn();
    const kept = await page.evaluate(() => JSON.stringify([localStorage, sessionStorage, document.cookie, location.href, window.name, history.state]));
    assert.ok(!kept.includes(KEY), kept);
    assert.equal(await page.evaluate(() => localStorage.length + sessionStorage.length + document.cookie.length), 0);
    await page.reload();
    await page.getByLabel('Key', { exact: true }).waitFor();
    assert.equal(await page.getByLabel('Key', { exact: true }).inputValue(), '');
    await signIn();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Key', { exact: true }).waitFor();
    await signIn();
    quiet();
  });

  test('shows every page, light and dark, wide and on a phone, without a serious problem', async () => {
    for (const theme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme: theme });
      for (const id of PAGES) {
        await open(id);
        await until(() => !document.querySelector('main').textContent.includes('Loading…'));
        if (id === 'overview') await page.locator('.facts dd').first().waitFor();
        assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), theme);
        assert.deepEqual(await axe(page, theme === 'dark' ? ['color-contrast'] : undefined), [], `${id} ${theme}`);
        await shot(page, `${id}-${theme}`);
      }
    }
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize({ width: 390, height: 844 });
    for (const id of PAGES) {
      await open(id);
      await until(() => !document.querySelector('main').textContent.includes('Loading…'));
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(overflow <= 0, `${id} is ${overflow} px too wide for a phone`);
      if (id === 'policies') assert.deepEqual(await axe(page, ['wcag2a']), [], 'stacked tables');
      await shot(page, `${id}-phone`, false);
    }
    await page.setViewportSize({ width: 1280, height: 860 });
    quiet();
  });

  test('lets the person choose the theme', async () => {
    await page.getByRole('button', { name: 'Use the dark theme' }).click();
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
    await page.getByRole('button', { name: 'Use the light theme' }).click();
    quiet();
  });

  test('is used by keyboard alone', async () => {
    await open('overview');
    await page.evaluate(() => { document.activeElement.blur(); scrollTo(0, 0); });
    await page.locator('.skip').focus();
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'main');
    await page.getByRole('link', { name: 'Policies' }).focus();
    await page.keyboard.press('Enter');
    await until(() => document.activeElement.tagName === 'H1' && document.activeElement.textContent === 'Policies');
    await page.getByRole('button', { name: 'New policy' }).focus();
    await page.keyboard.press('Enter');
    await dialog().waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.closest('dialog') !== null), true);
    await page.keyboard.press('Escape');
    await dialog().waitFor({ state: 'detached' });
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'New policy');
    quiet();
  });

  test('leafs through 1,000 policies by 50 and finds one', async () => {
    await open('policies');
    await page.getByText(/Policies 1 to 50 of 1,01\d/).waitFor();
    assert.equal(await page.locator('tbody tr').count(), 50);
    await page.getByRole('button', { name: 'Next' }).click();
    await page.getByText(/Policies 51 to 100/).waitFor();
    await page.getByLabel('Search').fill('customer-0777');
    await page.getByText('1 policy', { exact: true }).waitFor();
    await page.getByLabel('Search').fill('');
    await page.getByLabel('State').selectOption('unlimited');
    await page.getByText('of 32').waitFor();
    await page.getByLabel('State').selectOption('');
    await page.getByLabel('Source').selectOption('files');
    await page.getByRole('rowheader', { name: /per-client .*policies.yaml/ }).waitFor();
    await page.getByLabel('Source').selectOption('');
    quiet();
  });

  test('shows live rates, the hottest and the most limited keys', async () => {
    await open('overview');
    const limited = page.getByRole('group', { name: 'Keys that were limited most' });
    await untilBusy(['tight'], limited.getByRole('link', { name: 'tight' }));
    const hottest = page.getByRole('group', { name: 'Busiest keys' });
    await untilBusy(['tight'], hottest.getByRole('link', { name: 'tight' }));
    await page.getByRole('img', { name: /^Checks a second\. Now/ }).waitFor();
    await page.locator('.facts').getByText('closed').waitFor();
    await limited.getByRole('link', { name: 'tight' }).click();
    await page.locator('#found', { hasText: 'tight' }).waitFor();
    quiet();
  });

  test('lists versions, rolls back, shows the change in the audit log and undoes it', async () => {
    await ask('POST', '/admin/policies', { key: 'versioned', type: 'TOKEN_BUCKET', capacity: 10, refillRate: 1 });
    await ask('PUT', '/admin/policies/versioned', { type: 'TOKEN_BUCKET', capacity: 20, refillRate: 1 });
    await open('policies');
    await page.getByLabel('Search').fill('versioned');
    await page.getByRole('button', { name: 'Versions of versioned' }).click();
    await dialog().getByText('20, refills 1 a second').waitFor();
    assert.deepEqual(await axe(page), []);
    await shot(page, 'versions', false);
    await dialog().getByRole('button', { name: 'Roll back to version 1' }).click();
    await dialog().getByRole('button', { name: 'Roll back', exact: true }).click();
    await page.getByText('10, refills 1 a second').waitFor();
    assert.equal((await ask('GET', '/admin/policies/versioned')).capacity, 10);

    await open('audit');
    const row = page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: 'versioned' }) }).first();
    await row.getByText('capacity').waitFor();
    assert.match(await row.textContent(), /20\s*→\s*10/);
    assert.match(await row.textContent(), /version 2 → 3/);
    const [latest] = (await ask('GET', '/admin/audit?limit=1')).changes;
    assert.equal(await row.getByRole('cell').first().textContent(), String(latest.id));
    await shot(page, 'audit-change', false);
    const earlier = page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: 'versioned' }) }).nth(1).getByRole('button', { name: /^Undo/ });
    assert.ok(await earlier.isDisabled());
    assert.equal(await earlier.getAttribute('title'), `Undo change ${latest.id} first`);
    await row.getByRole('button', { name: /^Undo/ }).click();
    await dialog().getByRole('button', { name: 'Cancel' }).click();
    assert.equal((await ask('GET', '/admin/policies/versioned')).capacity, 10);
    await row.getByRole('button', { name: /^Undo/ }).click();
    await dialog().getByRole('button', { name: 'Undo' }).click();
    await page.getByRole('row').nth(1).getByText('policy.undo').waitFor();
    assert.equal((await ask('GET', '/admin/policies/versioned')).capacity, 20);
    quiet();
  });

  test('undoes changes of slot configs and of users’ limits', async () => {
    const config = (max) => ask('POST', '/admin/rate-limit/config', { configName: 'undone', windowSize: 'PT1M', maxPerWindow: max });
    await config(100);
    await config(7);
    await ask('POST', '/api/config', { userId: 'undone-user', rateLimit: 2, timeWindow: 60 });
    await open('policies'); // the list is read when the page is opened
    await open('audit');
    const rowOf = (what) => page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: what, exact: true }) }).first();
    assert.match(await rowOf('undone').textContent(), /maxPerWindow.*100\s*→\s*7/);
    await rowOf('undone').getByRole('button', { name: /^Undo/ }).click();
    await dialog().getByRole('button', { name: 'Undo' }).click();
    await page.getByRole('row').nth(1).getByText('slots.undo').waitFor();
    assert.equal((await ask('GET', '/admin/rate-limit/config/undone')).maxPerWindow, 100);
    await rowOf('undone-user').getByRole('button', { name: /^Undo/ }).click();
    await dialog().getByRole('button', { name: 'Undo' }).click();
    await page.getByRole('row').nth(1).getByText('notify.undo').waitFor();
    await assert.rejects(ask('GET', '/api/config/undone-user'));
    assert.deepEqual(await axe(page), []);
    quiet();
  });

  test('leafs through the audit log', async () => {
    await open('audit');
    await page.getByText('Changes 1 to 50').waitFor();
    await page.getByRole('button', { name: 'Next' }).click();
    await page.getByText('Changes 51 to 100').waitFor();
    await page.getByRole('button', { name: 'Previous' }).click();
    await page.getByText('Changes 1 to 50').waitFor();
    quiet();
  });

  test('counts notifications', async () => {
    await ask('POST', '/api/config', { userId: '42', rateLimit: 2, timeWindow: 60 });
    for (let i = 0; i < 3; i += 1) await ask('POST', '/api/send', { userId: '42', message: 'hello' }).catch(() => {});
    await open('notify');
    const sent = page.locator('.figure').filter({ hasText: 'Accepted' });
    await sent.getByText('2', { exact: true }).waitFor();
    await page.locator('.figure').filter({ hasText: 'Refused' }).getByText('1', { exact: true }).waitFor();
    await page.locator('.figure').filter({ hasText: 'Delivered' }).getByText('2', { exact: true }).waitFor();
    await page.locator('.figure').filter({ hasText: 'Retries' }).getByText('0', { exact: true }).waitFor();
    await page.locator('.figure').filter({ hasText: 'Senders running' }).getByText('1', { exact: true }).waitFor();
    await page.locator('.figure').filter({ hasText: 'Time to delivery' }).getByText(/ ms$| s$/).waitFor();
    await shot(page, 'notify-counts');
    quiet();
  });

  test('shows what became of a message', async () => {
    await ask('POST', '/api/config', { userId: '44', rateLimit: 9, timeWindow: 60 });
    await ask('POST', '/api/send', { userId: '44', message: 'hello', channel: 'nowhere' });
    await open('notify');
    await page.getByLabel('User', { exact: true }).fill('44');
    const row = page.getByRole('row').filter({ hasText: 'DEAD' }).filter({ hasText: 'channel nowhere has no provider' });
    // It takes a moment until the clients stop retrying.
    for (let i = 0; i < 1000 && await row.count() === 0; i += 1) {
      await page.getByRole('button', { name: 'Look up' }).click();
      await page.waitForTimeout(50);
    }
    await row.waitFor();
    await shot(page, 'notify-message');
    await ask('POST', '/admin/notify/dead/drop', { userId: '44' });
    quiet();
  });

  test('replays and drops dead letters', async () => {
    await ask('POST', '/api/config', { userId: '43', rateLimit: 9, timeWindow: 60 });
    for (let i = 0; i < 2; i += 1) await ask('POST', '/api/send', { userId: '43', message: 'hello', channel: 'none' });
    await open('notify');
    const letters = page.getByRole('row').filter({ hasText: 'channel none has no provider' });
    await letters.nth(1).waitFor();
    await shot(page, 'notify-dead');
    await letters.first().getByRole('button', { name: 'View' }).click();
    await dialog().getByText('hello', { exact: true }).waitFor();
    await dialog().getByRole('button', { name: 'Close' }).click();
    await dialog().waitFor({ state: 'detached' });
    await letters.first().getByRole('button', { name: 'Drop' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Drop' }).click();
    await letters.nth(1).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Replay all' }).click();
    await page.getByText('Put back into the queue.').waitFor();
    await letters.first().waitFor();  // it is a dead letter again
    const [replayed] = (await ask('GET', '/admin/audit?limit=1&action=notify.replay')).changes;
    await open('audit');
    await page.getByRole('row').filter({ hasText: 'notify.replay' }).getByRole('rowheader', { name: replayed.after.eventIds[0] }).first().waitFor();
    assert.equal(await page.getByRole('button', { name: /^Undo notify\.(replay|drop)/ }).count(), 0);
    quiet();
  });

  test('creates, edits, enforces and deletes a policy, each after asking', async () => {
    await open('policies');
    await page.getByRole('button', { name: 'New policy' }).click();
    assert.deepEqual(await axe(page), []);
    await shot(page, 'policy-form', false);
    // Settings that most policies leave at their defaults stay collapsed.
    assert.equal(await dialog().getByLabel('If the store fails').isVisible(), false);
    await dialog().getByText('More: cost, store failures').click();
    await dialog().getByLabel('If the store fails').waitFor();
    assert.deepEqual(await axe(page), []);
    await dialog().getByRole('button', { name: 'Create' }).click();
    await dialog().getByText('Give the policy a name.').waitFor();
    await dialog().getByLabel('Name or key').fill('made-here');
    await dialog().getByLabel('Algorithm').selectOption('SLIDING_COUNTER');
    await dialog().getByLabel('Capacity').fill('0');
    watched.expect(/status of 400/);
    await dialog().getByRole('button', { name: 'Create' }).click();
    await dialog().getByText(/capacity/).waitFor();
    await dialog().getByLabel('Capacity').fill('20');
    await dialog().getByLabel('Match').fill('user = *\nroute = /v1/pay');
    await dialog().getByText('Shadow', { exact: true }).click();
    await dialog().getByRole('button', { name: 'Create' }).click();
    await dialog().waitFor({ state: 'detached' });
    assert.deepEqual((({ type, capacity, shadow, match }) => ({ type, capacity, shadow, match }))(await ask('GET', '/admin/policies/made-here')),
      { type: 'SLIDING_COUNTER', capacity: 20, shadow: true, match: { user: '*', route: '/v1/pay' } });

    await page.getByLabel('Search').fill('made-here');
    await page.getByRole('button', { name: 'Enforce made-here' }).click();
    await shot(page, 'confirm', false);
    await dialog().getByRole('button', { name: 'Cancel' }).click();
    assert.equal((await ask('GET', '/admin/policies/made-here')).shadow, true);
    await page.getByRole('button', { name: 'Enforce made-here' }).click();
    await dialog().getByRole('button', { name: 'Enforce' }).click();
    await page.getByRole('button', { name: 'Shadow made-here' }).waitFor();
    assert.equal((await ask('GET', '/admin/policies/made-here')).shadow, false);

    await page.getByRole('button', { name: 'Edit made-here' }).click();
    await dialog().getByLabel('Capacity').fill('33');
    await dialog().getByRole('button', { name: 'Save' }).click();
    await page.getByText('33 in 1 min').waitFor();

    await page.getByRole('button', { name: 'Delete made-here' }).click();
    await dialog().getByRole('button', { name: 'Delete' }).click();
    await page.getByText('No policy matches.').waitFor();
    await assert.rejects(ask('GET', '/admin/policies/made-here'), /404/);
    quiet();
  });

  test('leafs through 100,000 keys and never draws them all', async () => {
    await open('keys');
    await page.getByText(/Buckets 1 to 50 of 100,/).waitFor();
    await page.getByRole('button', { name: 'Next' }).click();
    await page.getByText(/Buckets 51 to 100 of/).waitFor();
    assert.ok(await page.evaluate(() => document.querySelectorAll('*').length) < 2500);
    await page.getByLabel('Begins with').fill('key|user-09999');
    await page.getByText('Buckets 1 to 10').waitFor();
    await page.getByRole('button', { name: 'key|user-099999', exact: true }).click();
    await page.locator('#found', { hasText: 'user-099999' }).waitFor();
    quiet();
  });

  test('explains why a key is limited and resets it after asking', async () => {
    await open('keys');
    await page.getByLabel('Key or request').fill('tight');
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.locator('.pill', { hasText: 'limited' }).waitFor();
    await page.getByText(/limited by policy 'tight'; retry in \d+ min/).waitFor();
    assert.deepEqual(await axe(page), []);
    await shot(page, 'key-limited');
    await page.getByRole('button', { name: 'Reset tight' }).click();
    await dialog().getByRole('button', { name: 'Cancel' }).click();
    assert.equal((await ask('GET', '/admin/metrics/tight')).status, 'LIMITED');
    await page.getByRole('button', { name: 'Reset tight' }).click();
    await dialog().getByRole('button', { name: 'Reset' }).click();
    await page.locator('.pill', { hasText: 'has room' }).waitFor();
    assert.equal((await ask('GET', '/admin/metrics/tight')).status, 'OK');
    await page.getByLabel('Key or request').fill('user=42 route=/v1/pay');
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.getByText(/No policy applies to this request/).waitFor();
    quiet();
  });

  test('shows what Envoys are assigned of a bucket', async () => {
    const assignments = [{ perSecond: 60, demandPerSecond: 200, pushedMsAgo: 400 }, { perSecond: 0, demandPerSecond: 0 }];
    await page.route(/\/admin\/explain/, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...await response.json(), assignments } });
    });
    await open('keys');
    await page.getByLabel('Key or request').fill('tight');
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.getByText('2 connected here, 60 requests a second in all.').waitFor();
    const rows = page.getByRole('table', { name: 'Assignments of this bucket' }).locator('tbody tr');
    assert.match(await rows.nth(0).innerText(), /60\s+200\s+400 ms ago/);
    assert.match(await rows.nth(1).innerText(), /nothing\s+–\s+not yet/);
    assert.deepEqual(await axe(page), []);
    await page.unroute(/\/admin\/explain/);
    quiet();
  });

  test('shows what this node holds of a leased bucket', async () => {
    const held = [{ leased: true, held: 37, sharePerSecond: 1200 }, { leased: false, held: 0 }];
    await page.route(/\/admin\/explain/, async (route) => {
      const response = await route.fetch();
      const explained = await response.json();
      const policies = held.map((one) => ({ ...explained.policies[0], mode: 'rate_leased', estimated: true, ...one }));
      await route.fulfill({ response, json: { ...explained, policies } });
    });
    await open('keys');
    await page.getByLabel('Key or request').fill('tight');
    await page.getByRole('button', { name: 'Explain' }).click();
    const rows = page.getByRole('table', { name: 'Policies that apply to this request' }).locator('tbody tr');
    await rows.nth(0).getByText('in the store; this node holds 37 and 1,200 a second').waitFor();
    await rows.nth(1).getByText('in the store; not leased here now. What nodes hold or have lost counts as used').waitFor();
    assert.deepEqual(await axe(page), []);
    await page.unroute(/\/admin\/explain/);
    quiet();
  });

  test('shows the load of windows under their cap, and a forecast', async () => {
    await open('slots');
    await page.getByLabel('Config').selectOption({ label: 'payouts' });
    const chart = page.getByRole('img', { name: /Events per window/ });
    await chart.waitFor();
    assert.match(await chart.getAttribute('aria-label'), /the fullest holds 100 of 100/);
    assert.equal(await page.locator('.chart .cap').count(), 1);
    await page.getByText(/: \d+ windows; the fullest holds 100 of 100\.$/).waitFor();
    await page.getByLabel('Events', { exact: true }).fill('1000');
    await page.getByRole('button', { name: 'Forecast' }).click();
    await page.getByText('Nothing was assigned.').waitFor();
    assert.deepEqual(await axe(page), []);
    await shot(page, 'slots-forecast');
    quiet();
  });

  test('finds the windows of a feed for a far day', async () => {
    await ask('POST', '/admin/rate-limit/config', { configName: 'far', windowSize: 'PT4S', maxPerWindow: 100 });
    const events = (at, n) => ({ events: Array.from({ length: n }, (_, i) => ({ eventId: `${at}-${i}`, configName: 'far', requestedTime: at })) });
    await ask('POST', '/api/v1/slots/batch', events('2040-01-31T09:00:00Z', 1));
    await ask('POST', '/api/v1/slots/batch', events('2040-06-03T09:00:00Z', 250));
    await open('overview');
    await open('slots');
    await page.getByLabel('Config').selectOption({ label: 'far' });
    await page.getByText(/^31 Jan 2040, .*: 1 window; the fullest holds 1 of 100\.$/).waitFor();
    await page.getByRole('button', { name: 'Later events' }).click();
    await page.getByText(/^3 Jun 2040, .*: 3 windows; the fullest holds 100 of 100\.$/).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Later events' }).isVisible(), false);
    await page.getByLabel('From').fill('2040-01-01T00:00:01');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByText(/^31 Jan 2040, .*: 1 window;/).waitFor();
    await page.getByLabel('From').fill('2050-01-01T00:00:01');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByText('There are no events at this time or later.').waitFor();
    assert.deepEqual(await axe(page), []);
    await shot(page, 'slots-far');
    quiet();
  });

  test('shows what is due and claimed, and keeps it fresh', async () => {
    await ask('POST', '/admin/rate-limit/config', { configName: 'executed', windowSize: 'PT1S', maxPerWindow: 100 });
    const requestedTime = '2025-06-01T09:00:00Z';
    await ask('POST', '/api/v1/slots/batch', { events: Array.from({ length: 250 }, (_, i) => ({ eventId: `late${i}`, configName: 'executed', requestedTime })) });
    await open('overview');
    await open('slots');
    await page.getByLabel('Config').selectOption({ label: 'executed' });
    const box = (title, text) => page.locator('.figure').filter({ hasText: title }).getByText(text, { exact: true }).waitFor();
    await box('Due', '250');
    await box('Claimed', '0');
    await page.locator('.figure').filter({ hasText: 'Catching up takes' }).getByText(/^[23](\.\d+)? s$/).waitFor();
    const { events } = await ask('POST', '/api/v1/slots/claim', { config: 'executed', max: 7, leaseMs: 600000 });
    assert.equal(events.length, 7);
    await box('Due', '243');
    await box('Claimed', '7');
    await ask('POST', '/api/v1/slots/failed', { events: [{ eventId: events[0].eventId, attempt: 1, error: 'account closed' }] });
    await box('Dead letters', '1');
    assert.deepEqual(await axe(page), []);
    quiet();
  });

  test('shows hostile names as what they are, in every view', async () => {
    await open('policies');
    for (const hostile of HOSTILE) {
      await page.getByLabel('Search').fill(hostile.slice(0, 12));
      await page.locator('tbody tr').first().waitFor();
    }
    await page.getByLabel('Search').fill('<script');
    await page.getByRole('button', { name: /^Edit <script/ }).click();
    await dialog().waitFor();
    assert.equal(await dialog().getByLabel('Name or key').inputValue(), HOSTILE[0]);
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: /^Delete <script/ }).click();
    await shot(page, 'hostile-confirm', false);
    await dialog().getByRole('button', { name: 'Delete' }).click();
    await page.getByText('No policy matches.').waitFor();

    await open('keys');
    for (const hostile of [...HOSTILE, 'line\nbreak', 'x'.repeat(1024)]) {
      await page.getByLabel('Key or request').evaluate((input, value) => { input.value = value; }, hostile);
      await page.getByRole('button', { name: 'Explain' }).click();
      await page.locator('#found, [aria-live] .message').first().waitFor();
    }
    await page.getByLabel('Key or request').evaluate((input) => { input.value = 'y'.repeat(1 << 20); });
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.getByText('A key has at most 1,024 bytes.').waitFor();
    for (const body of [{ key: 'y'.repeat(1 << 20), type: 'TOKEN_BUCKET' }, { key: 'line\nbreak', type: 'TOKEN_BUCKET' }]) {
      await assert.rejects(ask('POST', '/admin/policies', body), /(400|413)/);
    }
    await page.getByLabel('Begins with').fill('key|\u202e');
    await page.getByText('Buckets 1 to 1').waitFor();
    assert.equal(await page.locator('tbody .odd').first().textContent(), 'U+202E');
    await shot(page, 'hostile-keys');
    await open('overview');
    await untilBusy(HOSTILE, page.getByRole('link', { name: HOSTILE[0] }).first());
    await shot(page, 'hostile-overview');
    await open('slots');
    await page.getByLabel('Config').selectOption({ label: HOSTILE[0] });
    await open('audit');
    await page.getByRole('rowheader', { name: HOSTILE[0] }).first().waitFor();
    await open('notify');
    await page.goto(`${weir.origin}/#/keys?key=${encodeURIComponent(HOSTILE[1])}`);
    await page.goto(`${weir.origin}/#/${encodeURIComponent(HOSTILE[0])}`);
    assert.equal(await page.evaluate(() => window.hit), undefined);
    assert.equal(await page.evaluate(() => document.querySelectorAll('main script, main img, main iframe').length), 0);
    quiet();
  });

  test('says what is not available instead of failing again and again', async () => {
    const other = await watchedPage(browser.context);
    other.expect(/status of (401|404)/);
    let asked = 0;
    await other.page.route(/\/admin\/(live|top|audit|notify)/, (route) => {
      asked += 1;
      return route.fulfill({ status: 404, contentType: 'application/json', body: '{"status":404,"error":"Not Found","message":"no such path"}' });
    });
    await signIn(other.page);
    await other.page.getByText('The live rate is not available on this service.').first().waitFor();
    await shot(other.page, 'not-available');
    await other.page.waitForTimeout(2500);
    // The rate, and the keys that are limited, checked, and limited in dry-run mode: each once.
    assert.ok(asked <= 4, `${asked} requests for what is not there`);
    for (const [id, text] of [['notify', 'The notification gateway'], ['audit', 'The audit log']]) {
      await other.page.getByRole('link', { name: new RegExp(id, 'i') }).click();
      await other.page.getByText(`${text} is not available on this service.`).waitFor();
    }
    assert.deepEqual(other.problems, []);
    await other.page.close();
  });

  test('sends the headers that keep others out', async () => {
    for (const path of ['/', '/assets/app.js', '/assets/base.css']) {
      const response = await fetch(weir.origin + path);
      assert.equal(response.status, 200);
      assert.match(response.headers.get('content-security-policy'), /default-src 'none'.*frame-ancestors 'none'/);
      assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
      assert.equal(response.headers.get('referrer-policy'), 'no-referrer');
      assert.equal(response.headers.get('set-cookie'), null);
      const again = await fetch(weir.origin + path, { headers: { 'If-None-Match': response.headers.get('etag') } });
      assert.equal(again.status, 304);
    }
    const missing = await fetch(`${weir.origin}/assets/none.js`);
    assert.equal(missing.status, 404);
    assert.equal((await missing.json()).status, 404);
    for (const [method, path] of [['POST', '/admin/reset/x'], ['POST', '/admin/policies'], ['PUT', '/admin/policies/x'], ['DELETE', '/admin/policies/x'],
      ['GET', '/admin/status'], ['GET', '/admin/metrics'], ['GET', '/admin/audit'], ['POST', '/admin/audit/1/undo'],
      ['POST', '/admin/policies/x/rollback'], ['GET', '/admin/live'], ['GET', '/admin/top'], ['GET', '/admin/notify'], ['GET', '/admin/routes'],
      ['GET', '/admin/explain?key=x'], ['POST', '/admin/rate-limit/config']]) {
      assert.equal((await fetch(weir.origin + path, { method })).status, 401, `${method} ${path}`);
    }
  });
});

describe('a page of another site', { concurrency: false }, () => {
  test('changes nothing on a service that asks for no key', async () => {
    const open = await startWeir(process.env.WEIR ?? '../../build/dev/weir');
    const { createServer } = await import('node:http');
    const evil = createServer((request, response) => response.writeHead(200, { 'Content-Type': 'text/html' }).end('<title>evil</title>'));
    await new Promise((resolve) => { evil.listen(0, '127.0.0.1', resolve); });
    const attacker = await browser.context.newPage();
    try {
      await fetch(`${open.origin}/admin/policies`, { method: 'POST', body: '{"key":"kept","type":"TOKEN_BUCKET"}', headers: { 'Content-Type': 'application/json' } });
      await attacker.goto(`http://127.0.0.1:${evil.address().port}/`);
      // Every request that needs no preflight, and some that do.
      await attacker.evaluate(async (target) => {
        const body = '{"key":"planted","type":"TOKEN_BUCKET"}';
        const tries = [['POST', '/admin/policies', { body, mode: 'no-cors' }], ['POST', '/admin/policies', { body: new URLSearchParams({ a: body }), mode: 'no-cors' }],
          ['POST', '/admin/reset/kept', { mode: 'no-cors' }], ['POST', '/admin/policies', { body, headers: { 'Content-Type': 'application/json' } }],
          ['DELETE', '/admin/policies/kept', {}], ['GET', '/admin/policies', {}]];
        await Promise.all(tries.map(([method, path, more]) => fetch(target + path, { method, ...more }).catch(() => {})));
        navigator.sendBeacon(`${target}/admin/policies`, body);
      }, open.origin);
      await attacker.evaluate((target) => {
        const form = document.createElement('form');
        form.method = 'POST';
        form.enctype = 'text/plain';
        form.action = `${target}/admin/policies`;
        const input = document.createElement('input');
        input.name = '{"key":"planted","type":"TOKEN_BUCKET","x":"';
        input.value = '"}';
        form.append(input);
        document.body.append(form);
        form.submit();
      }, open.origin);
      await attacker.waitForLoadState();
      await attacker.waitForURL(/admin\/policies/);
      assert.match(await attacker.evaluate(() => document.body.textContent), /403/);
      const policies = await (await fetch(`${open.origin}/admin/policies`)).json();
      assert.deepEqual(policies.filter((p) => !p.readOnly).map((p) => p.policyKey), ['kept']);
      // Without a key the dashboard opens immediately.
      const page = (await watchedPage(browser.context)).page;
      await page.goto(open.origin);
      await page.locator('h1', { hasText: 'Overview' }).waitFor();
      await page.close();
    } finally {
      await attacker.close();
      evil.close();
      await open.stop();
    }
  });
});
