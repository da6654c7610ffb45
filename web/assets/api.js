// The admin API. The key is only kept in this variable: it is lost when the page is closed.

let key = '';
let onUnauthorized = () => {};
let access = null;

export function setKey(value) { key = value; }
export function hasKey() { return key !== ''; }
export function whenUnauthorized(call) { onUnauthorized = call; }

/** Sets what this key may do, from GET /admin/routes; null: not known. */
export function setAccess(routes) { access = routes; }

/**
 * Why this key may not use a route ('POST /admin/reset'); empty if it may. The service decides; this lets the page
 * say so before the user fills in a form.
 */
export function refusalOf(route) {
  const role = access?.roles[route];
  return role === undefined || access.allowed.includes(route) ? '' : `Needs a key with the role ${role}.`;
}

/** An error with a message for the user. `status` 0: the service could not be reached. */
export class ApiError extends Error {
  constructor(status, message, body = {}) {
    super(message);
    this.status = status;
    this.body = body;
  }

  /** Whether this service has no such endpoint, or it is switched off. */
  get missing() { return this.status === 404 || this.status === 405 || this.status === 501; }
}

// A header is bytes; the browser decodes them as Latin-1.
function headerText(value) {
  return new TextDecoder().decode(Uint8Array.from(value, (c) => c.charCodeAt(0)));
}

async function errorOf(response) {
  let message = response.statusText || `status ${response.status}`;
  let body;
  try {
    body = await response.json();
    if (typeof body.message === 'string') message = body.message;
  } catch { /* not JSON: the status is enough */ }
  return new ApiError(response.status, message, body);
}

async function ask(method, path, body, signal) {
  const headers = { Accept: 'application/json' };
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  let response;
  try {
    response = await fetch(path, {
      method, headers, signal, cache: 'no-store', credentials: 'omit', redirect: 'error',
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, 'The service cannot be reached.');
  }
  if (!response.ok) {
    const error = await errorOf(response);
    if (error.status === 401) onUnauthorized(error);
    throw error;
  }
  return response;
}

async function json(method, path, body, signal) {
  const response = await ask(method, path, body, signal);
  if (response.status === 204) return null;
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

export const get = (path, signal) => json('GET', path, undefined, signal);
export const post = (path, body) => json('POST', path, body);
export const put = (path, body) => json('PUT', path, body);
export const del = (path) => json('DELETE', path);

/** One page of a list: { items, next, total }. */
export async function page(path, signal) {
  const response = await ask('GET', path, undefined, signal);
  const next = response.headers.get('X-Next-Cursor');
  const total = response.headers.get('X-Total-Count');
  return {
    items: await response.json(),
    next: next ? headerText(next) : '',
    total: total === null ? undefined : Number(total),
  };
}

/** path`/admin/reset/${key}`: every value percent-encoded. */
export function path(texts, ...values) {
  return texts.reduce((all, text, i) => all + encodeURIComponent(values[i - 1].toWellFormed?.() ?? values[i - 1]) + text);
}
