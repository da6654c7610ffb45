// The path of an operator at three in the morning: from the overview to the bucket of a descriptor policy, its
// explanation and its reset; restoring the intended policy for a while; and a store that fails and returns.
// Usage: WEIR=program SCREENSHOTS=folder node --test steering.test.js

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { KEY, axe, client, shots, startBrowser, startMariadb, startRedis, startWeirWith, watchedPage } from './harness.js';

const POLICIES = [`domain: api
policies:
  - name: per-user
    match: { user: "*" }
    quota: { fixed_window: { limit: 5, window: 100d } }
  - name: pay
    match: { user: "*", route: /v1/pay }
    quota: { sliding_log: { limit: 3, window: 1d } }
`, `domain: web
policies:
  - name: visitors
    match: { user: "*", ip: "*" }
    quota: { fixed_window: { limit: 50, window: 100d } }
  - name: on-trial
    match: { client: "*" }
    quota: { fixed_window: { limit: 1, window: 100d } }
    shadow: true
  - name: by-route
    match: { route: /v1/pay }
    quota: { fixed_window: { limit: 50000, window: 100d } }
`];
const BUCKET = 'api/per-user|user:z';
let redis;
let mariadb;
let weir;
let browser;
let ask;
let page;
let watched;
const shot = shots(process.env.SCREENSHOTS ?? 'screenshots');
const dialog = () => page.getByRole('dialog');
const quiet = () => assert.deepEqual(watched.problems.splice(0), []);
const check = (user, n = 1) => ask('POST', '/v1/check', { checks: Array(n).fill({ domain: 'api', descriptors: [{ user }] }) });

async function open(id) {
  await page.getByRole('navigation').getByRole('link', { name: new RegExp(`^${id}$`, 'i') }).click();
  await page.locator('h1', { hasText: new RegExp(id, 'i') }).waitFor();
}
async function explain(text) {
  await page.getByLabel('Key or request').fill(text);
  await page.getByRole('button', { name: 'Explain' }).click();
}
async function eventually(condition, what) {
  for (const end = Date.now() + 60000; !await condition();) {
    assert.ok(Date.now() < end, `still not: ${what}`);
    await page.waitForTimeout(100);
  }
}

async function signIn(key) {
  await page.goto('about:blank');
  await page.goto(weir.origin);
  await page.getByLabel('Key', { exact: true }).fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.locator('.top').waitFor();
}

async function serve(...more) {
  await page.goto('about:blank'); // an open page would poll while the service restarts
  await weir?.stop();
  weir = await startWeirWith(POLICIES, process.env.WEIR ?? '../../build/dev/weir', '--admin-key', KEY, ...more);
  ask = client(weir.origin);
  await signIn(KEY);
}

before(async () => {
  browser = await startBrowser();
  watched = await watchedPage(browser.context);
  watched.expect(/status of 40[014]/);
  page = watched.page;
});
after(async () => {
  await browser?.stop();
  await weir?.stop();
  await redis?.kill();
  await mariadb?.remove();
});

describe('steering', { concurrency: false }, () => {
  test('leads from the overview to the explanation of a bucket, its reset and its policy', async () => {
    await serve();
    const link = page.getByRole('group', { name: 'Keys that were limited most' }).getByRole('link', { name: BUCKET });
    await eventually(async () => { await check('z', 50); return link.isVisible(); }, 'the bucket is among the limited');
    await page.getByRole('group', { name: 'Busiest keys' }).getByRole('link', { name: BUCKET }).waitFor();
    await page.getByRole('group', { name: 'Busiest keys' }).getByRole('button', { name: `Reset ${BUCKET}` }).waitFor();
    await link.click();
    await page.locator('#found', { hasText: BUCKET }).waitFor();
    await page.locator('.pill', { hasText: 'limited' }).waitFor();
    await page.getByText(/limited by policy 'per-user'; retry in \d+ d/).waitFor();
    const row = page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: 'per-user' }) }).first();
    await row.getByText('0 of 5', { exact: true }).waitFor();
    assert.deepEqual(await axe(page), []);
    await shot(page, 'bucket-limited');
    const reset = page.locator('section', { has: page.locator('#found') }).getByRole('button', { name: `Reset ${BUCKET}` });
    await reset.click();
    await dialog().getByRole('button', { name: 'Cancel' }).click();
    assert.equal((await ask('GET', `/admin/explain?${new URLSearchParams({ bucket: BUCKET })}`)).remaining, 0);
    await reset.click();
    await dialog().getByRole('button', { name: 'Reset' }).click();
    await page.locator('.pill', { hasText: 'has room' }).waitFor();
    assert.equal((await ask('GET', `/admin/explain?${new URLSearchParams({ bucket: BUCKET })}`)).remaining, 5);
    await reset.click();
    await dialog().getByRole('button', { name: 'Reset' }).click();
    await page.getByText('The key had not used anything').waitFor();
    await row.getByRole('link', { name: 'per-user' }).click();
    await page.locator('h1', { hasText: 'Policies' }).waitFor();
    assert.equal(await page.getByLabel('Search').inputValue(), 'per-user');
    await page.getByRole('rowheader', { name: 'per-user' }).waitFor();
    quiet();
  });

  test('finds a customer of another policy by what was entered as a key', async () => {
    await check('77', 1);
    await open('keys');
    await page.getByLabel('Key or request').fill('77');
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.getByRole('button', { name: 'Find it in all buckets' }).click();
    await page.getByRole('rowheader', { name: 'api/per-user|user:77' }).waitFor();
    assert.equal(await page.getByLabel('Contains').inputValue(), '77');
    // What an entry alone does not show.
    await page.getByLabel('Key or request').fill('domain=api user=77 pln=basic');
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.getByText("no policy looks at 'pln'").waitFor();
    await page.locator('.pill', { hasText: 'has room here' }).waitFor();
    await open('policies');
    quiet();
  });

  test('shows the state of every bucket in the list, explains and resets it there', async () => {
    await check('y', 2);
    await open('keys');
    const row = page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: 'api/per-user|user:y' }) });
    await row.getByText('2 of 5').waitFor();
    await row.getByText('room').waitFor();
    await row.getByRole('link', { name: 'per-user' }).waitFor();
    await shot(page, 'buckets');
    await check('w', 5);
    await page.getByLabel('Limited only').check();
    await page.getByRole('rowheader', { name: 'api/per-user|user:w' }).waitFor();
    assert.equal(await row.count(), 0);
    await page.getByLabel('Limited only').uncheck();
    await row.waitFor();
    await page.getByLabel('Contains').fill('user:w');
    await page.getByRole('rowheader', { name: 'api/per-user|user:w' }).waitFor();
    await row.waitFor({ state: 'detached' });
    await page.getByLabel('Contains').fill('');
    await row.waitFor();
    await row.getByRole('button', { name: 'api/per-user|user:y', exact: true }).click();
    await page.locator('#found', { hasText: 'api/per-user|user:y' }).waitFor();
    await page.getByText('3 of 5').first().waitFor();
    await row.getByRole('button', { name: 'Reset api/per-user|user:y' }).click();
    await dialog().getByRole('button', { name: 'Reset' }).click();
    await page.getByText('5 of 5').first().waitFor();
    quiet();
  });

  test('gives one customer a limit of its own for an hour', async () => {
    await check('w', 6);
    await open('keys');
    await explain('api/per-user|user:w');
    await page.getByRole('button', { name: 'Exception from per-user' }).click();
    assert.equal(await dialog().getByLabel('Match').inputValue(), 'user = w');
    assert.equal(await dialog().getByLabel('Capacity').inputValue(), '10'); // twice the 5 of the policy
    await shot(page, 'exception');
    await dialog().getByRole('button', { name: 'Create' }).click();
    await page.locator('#found', { hasText: 'domain=api user=w' }).waitFor();
    await page.locator('.pill', { hasText: 'has room' }).waitFor();
    const made = await ask('GET', '/admin/policies/per-user%20for%20w');
    assert.deepEqual([made.capacity, made.windowSeconds, made.domain, made.match], [10, 8640000, 'api', { user: 'w' }]);
    const hours = (new Date(made.expiresAt) - Date.now()) / 3600000;
    assert.ok(hours > 0.9 && hours <= 1, made.expiresAt);
    assert.equal((await check('w', 1)).results[0].allowed, true);
    // A bare key that has no policy gets a new one.
    await explain('somebody');
    await page.getByRole('button', { name: 'Exception from default' }).click();
    assert.equal(await dialog().getByLabel('Name or key').inputValue(), 'somebody');
    await dialog().getByRole('button', { name: 'Create' }).click();
    await page.getByText(/would allow: 200 of 200 left/).waitFor();
    // And the exception can be changed.
    await page.getByRole('button', { name: 'Exception from somebody' }).click();
    await dialog().getByLabel('Capacity').fill('7');
    await dialog().getByRole('button', { name: 'Save' }).click();
    await page.getByText(/would allow: 7 of 7 left/).waitFor();
    quiet();
  });

  test('explains requests without a domain, and asks which where several could be meant', async () => {
    await open('keys');
    await explain('user=z');
    await page.getByText('domain api').waitFor();
    await explain('user=z route=/v1/pay');
    await page.getByRole('heading', { name: 'Which domain?' }).waitFor();
    assert.deepEqual(await axe(page), []);
    await page.getByRole('button', { name: 'web', exact: true }).click();
    await page.getByRole('rowheader', { name: 'by-route' }).waitFor();
    assert.equal(await page.getByLabel('Key or request').inputValue(), 'domain=web user=z route=/v1/pay');
    await explain('api/gone|user:z');
    await page.getByText(/no current policy has this bucket/).waitFor();
    quiet();
  });

  test('enforces a policy of a file by an override, with an end, and gives the file the say again', async () => {
    const allowed = async () => (await ask('POST', '/v1/check', { domain: 'web', descriptors: [{ client: 'trial' }], cost: 2 })).allowed;
    assert.equal(await allowed(), true);
    await open('policies');
    await page.getByLabel('Search').fill('on-trial');
    const row = page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: 'on-trial' }) });
    await row.getByText('shadow', { exact: true }).waitFor();
    await row.getByRole('rowheader', { name: /policies1\.yaml:/ }).waitFor();
    await page.getByRole('button', { name: 'Enforce on-trial' }).click();
    await dialog().getByText('shadow: false').waitFor();
    assert.deepEqual(await axe(page), []);
    await shot(page, 'override', false);
    await dialog().getByRole('button', { name: 'Cancel' }).click();
    assert.equal(await allowed(), true);
    await page.getByRole('button', { name: 'Enforce on-trial' }).click();
    await dialog().getByLabel('Ends').fill('2020-01-01T00:00:30');
    await dialog().getByRole('button', { name: 'Enforce' }).click();
    await dialog().getByText('Enter a time in the future, or none.').waitFor();
    await dialog().getByLabel('Ends').fill('2099-01-01T00:00:30');
    await dialog().getByRole('button', { name: 'Enforce' }).click();
    const until = await row.getByText(/by override until .*2099/).innerText();
    await row.getByText('enforced', { exact: true }).waitFor();
    assert.equal(await allowed(), false);
    assert.equal(await page.locator('tbody tr').count(), 1); // the override has no row of its own
    assert.deepEqual(await axe(page), []);
    await shot(page, 'overridden');
    await row.getByRole('button', { name: 'Versions of the override of on-trial' }).click();
    await dialog().getByRole('cell', { name: 'enforced' }).waitFor();
    await dialog().getByRole('button', { name: 'Close' }).click();
    await row.getByRole('button', { name: 'Back to file for on-trial' }).click();
    await dialog().getByRole('button', { name: 'Back to the file' }).click();
    await row.getByText('shadow', { exact: true }).waitFor();
    assert.equal(await allowed(), true);
    await open('audit');
    await page.getByRole('rowheader', { name: 'web/on-trial' }).first().waitFor();
    // In the same zone as everywhere on the pages.
    await page.locator('.diff', { hasText: until.replace(/^.* until /, '') }).first().waitFor();
    quiet();
  });

  test('shows what a reload of the policy files changed, and that the file is the place to undo it', async () => {
    weir.writePolicies(POLICIES[0].replace('limit: 5,', 'limit: 6,'));
    await open('audit');
    const row = page.getByRole('row').filter({ hasText: 'policy.file' }).first();
    await eventually(async () => { await open('keys'); await open('audit'); return row.isVisible(); }, 'the reload is in the log');
    assert.match(await row.textContent(), /file policies\.yaml.*per-user.*capacity\s*5\s*→\s*6/s);
    await row.getByText('edit the file').waitFor();
    assert.equal(await row.getByRole('button').count(), 0);
    quiet();
  });

  test('asks for a new end before what was meant for a while comes back', async () => {
    await ask('POST', '/admin/policies', { key: 'launch', type: 'TOKEN_BUCKET', capacity: 1, refillRate: 1 });
    await ask('PUT', '/admin/policies/launch', { type: 'TOKEN_BUCKET', capacity: 9, refillRate: 1, expiresAt: new Date(Date.now() + 2000).toISOString() });
    await eventually(async () => (await ask('GET', '/admin/policies/launch')).capacity === 1, 'it has ended');
    await open('policies');
    await page.getByLabel('Search').fill('launch');
    await page.getByRole('button', { name: 'Versions of launch' }).click();
    assert.match(await dialog().getByRole('row').filter({ hasText: '9, refills' }).textContent(), /capacity\s*1\s*→\s*9/);
    await dialog().getByRole('button', { name: 'Roll back to version 2' }).click();
    await dialog().getByLabel('Ends').fill('2020-01-01T00:00:30');
    await dialog().getByRole('button', { name: 'Continue' }).click();
    await dialog().getByText('Enter a time in the future.').waitFor();
    assert.deepEqual(await axe(page), []);
    await shot(page, 'new-end', false);
    await dialog().getByLabel('Ends').fill('2099-01-01T00:00:30');
    await dialog().getByRole('button', { name: 'Continue' }).click();
    await dialog().getByText('capacity').waitFor();
    await dialog().getByRole('button', { name: 'Roll back', exact: true }).click();
    await page.getByText('9, refills 1 a second').waitFor();
    assert.match((await ask('GET', '/admin/policies/launch')).expiresAt, /^20(98-12-31|99-01-01)T/);
    quiet();
  });

  test('shows where policies are kept, and that this place goes away and comes back', async () => {
    const kept = page.locator('.facts div').filter({ has: page.getByText('Policies kept in', { exact: true }) });
    await open('overview');
    await kept.getByText('sqlite:').waitFor();
    await kept.getByText('up', { exact: true }).waitFor();
    mariadb = await startMariadb();
    await serve('--policy-store', mariadb.url);
    await kept.getByText(/^mysql:/).waitFor();
    await kept.getByText('up', { exact: true }).waitFor();
    await mariadb.kill();
    await kept.getByText('down', { exact: true }).waitFor();
    await page.getByText('The last known policies stay active').waitFor();
    await page.getByText('Last error there').waitFor();
    assert.deepEqual(await axe(page), []);
    await shot(page, 'policy-store-down');
    await mariadb.start();
    await kept.getByText('up', { exact: true }).waitFor();
    await page.getByText('The last known policies stay active').waitFor({ state: 'detached' });
    quiet();
  });

  test('disables what a key may not do, and says which role it needs', async () => {
    await serve('--access-key', 'lookout:read:a-key-that-may-look', '--access-key', 'night:operate:a-key-of-the-night');
    await ask('POST', '/admin/policies', { key: 'z', type: 'TOKEN_BUCKET', capacity: 5 });
    await check('z', 6);
    const access = page.locator('#access');
    const buttons = {
      policies: () => [page.getByRole('button', { name: 'New policy' }), page.getByRole('button', { name: 'Delete z' }), page.getByRole('button', { name: 'Enforce on-trial' })],
      audit: () => [page.getByRole('button', { name: 'Undo policy.create of z' })],
    };
    const reset = page.getByRole('button', { name: `Reset ${BUCKET}` });
    assert.equal(await access.isVisible(), false);
    for (const [key, text, mayReset] of [['a-key-that-may-look', 'Read only', false], ['a-key-of-the-night', 'No policy changes', true]]) {
      await signIn(key);
      await access.getByText(text).waitFor();
      for (const [id, all] of Object.entries(buttons)) {
        await open(id);
        for (const button of all()) {
          await button.waitFor();
          assert.equal(await button.isDisabled(), true);
          assert.equal(await button.getAttribute('title'), 'Needs a key with the role policies.');
        }
      }
      await open('keys');
      await reset.waitFor();
      assert.equal(await reset.isEnabled(), mayReset);
      if (!mayReset) assert.equal(await reset.getAttribute('title'), 'Needs a key with the role operate.');
      await open('policies');
      assert.equal(await page.getByRole('button', { name: 'Edit z' }).count(), 0);
      assert.equal(await page.getByRole('button', { name: 'Versions of z' }).isEnabled(), true);
      assert.deepEqual(await axe(page), []);
    }
    await signIn(KEY);
    await open('policies');
    assert.equal(await page.getByRole('button', { name: 'New policy' }).isEnabled(), true);
    quiet();
  });

  test('shows how the store goes away and comes back', async () => {
    redis = await startRedis();
    await serve('--store', redis.url);
    const fact = (term, value) => page.locator('.facts div').filter({ has: page.getByText(term, { exact: true }) }).getByText(value, { exact: true });
    await fact('State', 'up').waitFor();
    await fact('Breaker', 'closed').waitFor();
    await check('r', 6);
    await redis.kill();
    await eventually(async () => { await check('r'); return await fact('State', 'down').isVisible() && fact('Breaker', 'open').isVisible(); }, 'down and open');
    await page.getByText('Last error', { exact: true }).waitFor();
    await page.getByText('The store is down').waitFor();
    assert.deepEqual(await axe(page), []);
    await shot(page, 'store-down');
    await redis.start();
    await eventually(async () => await fact('State', 'up').isVisible() && fact('Breaker', 'closed').isVisible(), 'up and closed');
    await page.getByText('The store is down').waitFor({ state: 'detached' });
    await eventually(async () => !(await check('r', 6)).results.at(-1).allowed, 'limited by the store');
    await open('keys');
    await explain('api/per-user|user:r');
    await page.locator('.pill', { hasText: 'limited' }).waitFor();
    await page.locator('section', { has: page.locator('#found') }).getByRole('button', { name: 'Reset api/per-user|user:r' }).click();
    await dialog().getByRole('button', { name: 'Reset' }).click();
    await page.locator('.pill', { hasText: 'has room' }).waitFor();
    quiet();
  });
});
