// Policies changed through the form keep what the form does not show, and two people who change the
// same one do not silently undo each other's work.
// Usage: WEIR=program node --test editing.test.js

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { KEY, client, startBrowser, startWeir, watchedPage } from './harness.js';

let weir;
let browser;
let ask;
let page;
let watched;
const dialog = () => page.getByRole('dialog');
const quiet = () => assert.deepEqual(watched.problems.splice(0), []);
const of = (key) => ask('GET', `/admin/policies/${key}`);

async function openPolicies() {
  await page.goto(`${weir.origin}/#/policies`);
  await page.reload();
  await page.getByLabel('Key', { exact: true }).fill(KEY);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: 'New policy' }).waitFor();
}

before(async () => {
  weir = await startWeir(process.env.WEIR ?? '../../build/dev/weir', '--admin-key', KEY);
  ask = client(weir.origin);
  browser = await startBrowser();
  watched = await watchedPage(browser.context);
  watched.expect(/status of 40[19]/);
  page = watched.page;
});
after(async () => {
  await browser?.stop();
  await weir?.stop();
});

describe('a change of a policy', { concurrency: false }, () => {
  test('leaves a limit of every request one of every request', async () => {
    await ask('POST', '/admin/policies', { key: 'all', type: 'SLIDING_WINDOW', capacity: 5, windowSeconds: 3600, domain: 'api', match: {} });
    await openPolicies();
    await page.getByRole('row', { name: /all.*every request/ }).waitFor();
    await page.getByRole('button', { name: 'Edit all' }).click();
    await dialog().getByLabel('Capacity').fill('6');
    await dialog().getByRole('button', { name: 'Save' }).click();
    await page.getByText('6 in 1 h').waitFor();
    const { capacity, domain, match } = await of('all');
    assert.deepEqual({ capacity, domain, match }, { capacity: 6, domain: 'api', match: {} });
    const { remaining } = await ask('POST', '/v1/check', { domain: 'api', descriptors: [{ user: 'anyone' }] });
    assert.equal(remaining, 5);
    quiet();
  });

  test('does not undo what somebody else has changed since', async () => {
    const policy = { key: 'both', type: 'TOKEN_BUCKET', capacity: 10, refillRate: 1, shadow: true };
    await ask('POST', '/admin/policies', policy);
    for (const [button, yes] of [['Enforce both', 'Enforce'], ['Edit both', 'Save'], ['Delete both', 'Delete']]) {
      await openPolicies();
      await page.getByRole('button', { name: button }).waitFor();
      const capacity = (await of('both')).capacity + 10;
      await ask('PUT', '/admin/policies/both', { ...policy, capacity });
      await page.getByRole('button', { name: button }).click();
      await dialog().getByRole('button', { name: yes }).click();
      await page.getByText(/has changed/).first().waitFor();
      assert.deepEqual((({ shadow, capacity: now }) => ({ shadow, now }))(await of('both')), { shadow: true, now: capacity });
    }
    quiet();
  });

  test('is made once the page shows what it is about', async () => {
    await openPolicies();
    await page.getByRole('button', { name: 'Enforce both' }).waitFor();
    await ask('PUT', '/admin/policies/both', { key: 'both', type: 'TOKEN_BUCKET', capacity: 77, refillRate: 1, shadow: true });
    await page.getByRole('button', { name: 'Enforce both' }).click();
    await dialog().getByRole('button', { name: 'Enforce' }).click();
    await page.getByText(/^77, refills/).waitFor();
    await page.getByRole('button', { name: 'Enforce both' }).click();
    await dialog().getByRole('button', { name: 'Enforce' }).click();
    await page.getByRole('button', { name: 'Shadow both' }).waitFor();
    assert.equal((await of('both')).capacity, 77);
    quiet();
  });
});
