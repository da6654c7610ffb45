// Starts the program and the browser, and watches for errors in the page while a test drives it.

import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

export const KEY = 'browser-test-key';
const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'];

const POLICIES = `domain: web
policies:
  - name: per-client
    match: { ip: "*" }
    quota: { sliding_log: { limit: 100, window: 1m } }
`;

/** `weir serve` on a free port, with one policy from a file. */
export const startWeir = (program, ...more) => startWeirWith(POLICIES, program, ...more);

/** The same with the given policies: the text of a file, or of several. */
export async function startWeirWith(policies, program, ...more) {
  const data = mkdtempSync(join(tmpdir(), 'weir-browser-'));
  const files = [policies].flat().map((text, i) => {
    const file = join(data, `policies${i || ''}.yaml`);
    writeFileSync(file, text);
    return ['--policies', file];
  });
  const child = spawn(program, ['serve', '--http', '127.0.0.1:0', '--grpc', 'off', '--resp', 'off', '--data', data,
    ...files.flat(), ...more],
    // Messages on other channels than sms become dead letters.
    { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, WEIR_NOTIFY_PROVIDERS: 'sms=console:' } });
  let said = '';
  child.stderr.on('data', (bytes) => { said = (said + bytes).slice(-20000); });
  const port = await new Promise((resolve, reject) => {
    child.stdout.on('data', (bytes) => {
      said += bytes;
      const found = /listening http 127\.0\.0\.1:(\d+)/.exec(said);
      if (found) resolve(Number(found[1]));
    });
    child.on('exit', (code) => reject(new Error(`weir ended with ${code}:\n${said}`)));
  });
  return {
    origin: `http://127.0.0.1:${port}`,
    said: () => said,
    writePolicies: (text) => writeFileSync(join(data, 'policies.yaml'), text),
    async stop() {
      if (child.exitCode !== null) return;
      child.removeAllListeners('exit');
      const gone = new Promise((resolve) => { child.on('exit', resolve); });
      child.kill('SIGTERM');
      await gone;
      rmSync(data, { recursive: true, force: true });
    },
  };
}

/** A Redis that can be killed and restarted on the same port. */
export async function startRedis() {
  const port = await freePort();
  let child;
  const redis = {
    url: `redis://127.0.0.1:${port}`,
    async start() {
      child = spawn('redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'], { stdio: ['ignore', 'pipe', 'ignore'] });
      await new Promise((resolve, reject) => {
        child.stdout.on('data', (bytes) => { if (String(bytes).includes('Ready to accept connections')) resolve(); });
        child.on('exit', (code) => reject(new Error(`redis-server ended with ${code}`)));
      });
    },
    async kill() {
      child.removeAllListeners('exit');
      const gone = new Promise((resolve) => { child.on('exit', resolve); });
      child.kill('SIGKILL');
      await gone;
    },
  };
  await redis.start();
  return redis;
}

async function freePort() {
  const probe = createServer();
  await new Promise((resolve) => { probe.listen(0, '127.0.0.1', resolve); });
  const { port } = probe.address();
  await new Promise((resolve) => { probe.close(resolve); });
  return port;
}

/** A MariaDB for policies that can be killed and restarted on the same port. */
export async function startMariadb() {
  const folder = mkdtempSync(join(tmpdir(), 'weir-mariadb-'));
  const data = join(folder, 'data');
  const user = process.getuid() === 0 ? ['--user=root'] : [];
  const made = spawnSync('mariadb-install-db', ['--no-defaults', `--datadir=${data}`, '--auth-root-authentication-method=normal', '--skip-test-db', ...user], { encoding: 'utf8' });
  if (made.status !== 0) throw new Error(`mariadb-install-db: ${made.stdout}${made.stderr}`);
  writeFileSync(join(data, 'init.sql'), "CREATE DATABASE IF NOT EXISTS weir;\nCREATE USER IF NOT EXISTS weir@'%';\nGRANT ALL ON weir.* TO weir@'%';\n");
  const port = await freePort();
  let child;
  const database = {
    url: `mysql://weir@127.0.0.1:${port}/weir`,
    async start() {
      child = spawn('mariadbd', ['--no-defaults', `--datadir=${data}`, `--port=${port}`, '--bind-address=127.0.0.1', `--socket=${join(data, 'socket')}`,
        `--pid-file=${join(data, 'pid')}`, `--init-file=${join(data, 'init.sql')}`, '--skip-name-resolve', ...user], { stdio: ['ignore', 'ignore', 'pipe'] });
      let said = '';
      await new Promise((resolve, reject) => {
        child.stderr.on('data', (bytes) => {
          said = (said + bytes).slice(-20000);
          if (said.includes('ready for connections')) resolve();
        });
        child.on('exit', (code) => reject(new Error(`mariadbd ended with ${code}: ${said}`)));
      });
    },
    async kill() {
      child.removeAllListeners('exit');
      const gone = new Promise((resolve) => { child.on('exit', resolve); });
      child.kill('SIGKILL');
      await gone;
    },
    async remove() {
      await database.kill().catch(() => {});
      rmSync(folder, { recursive: true, force: true });
    },
  };
  await database.start();
  return database;
}

export async function startBrowser() {
  const folder = mkdtempSync(join(tmpdir(), 'weir-chromium-'));
  const context = await chromium.launchPersistentContext(folder, {
    executablePath: process.env.WEIR_CHROMIUM ?? '/usr/bin/chromium', args: FLAGS, headless: true,
    viewport: { width: 1280, height: 860 }, colorScheme: 'light', reducedMotion: 'reduce',
  });
  return {
    context,
    async stop() {
      await context.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A page that remembers every error. `expected`: patterns of errors that a test provokes. */
export async function watchedPage(context) {
  const page = await context.newPage();
  page.setDefaultTimeout(60000);
  const problems = [];
  const expected = [];
  page.on('console', (line) => {
    const text = `${line.text()} ${line.location().url ?? ''}`;
    if (['error', 'warning'].includes(line.type()) && !expected.some((e) => e.test(text))) problems.push(text);
  });
  page.on('pageerror', (error) => problems.push(`uncaught: ${error.message}`));
  page.on('dialog', (box) => {
    problems.push(`a script opened a dialog: ${box.message()}`);
    box.dismiss();
  });
  page.on('request', (request) => {
    if (!/^(http:\/\/127\.0\.0\.1:|data:)/.test(request.url())) problems.push(`asked another host: ${request.url()}`);
  });
  return { page, problems, expect: (pattern) => expected.push(pattern) };
}

/** Serious or critical problems found by axe. `rules`: only these, where only they can differ. */
export async function axe(page, rules) {
  if (!await page.evaluate(() => 'axe' in globalThis)) await page.evaluate(axeSource);
  const found = await page.evaluate((only) => globalThis.axe.run(document, { resultTypes: ['violations'], ...(only && { runOnly: only }) }), rules);
  return found.violations.filter((v) => ['serious', 'critical'].includes(v.impact))
    .map((v) => `${v.id} (${v.impact}): ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(' | ')}`);
}

export function shots(folder) {
  mkdirSync(folder, { recursive: true });
  return (page, name, full = true) => page.screenshot({ path: join(folder, `${name}.png`), fullPage: full, animations: 'disabled' });
}

/** Sends requests directly to the service, as an operator's script would. */
export function client(origin) {
  return async (method, path, body) => {
    const response = await fetch(origin + path, {
      method, headers: { 'X-API-Key': KEY, ...(body !== undefined && { 'Content-Type': 'application/json' }) },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 300)}`);
    return text ? JSON.parse(text) : null;
  };
}
