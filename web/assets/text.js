// Formats numbers, times and durations, and shows names that were chosen to mislead as what they are.

const integer = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const decimal = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });

export function count(n) {
  return Number.isFinite(n) ? integer.format(n) : '–';
}

/** A rate: whole when large, three digits when small. */
export function rate(n) {
  if (!Number.isFinite(n)) return '–';
  return n >= 100 ? integer.format(n) : decimal.format(n);
}

export function short(n) {
  if (!Number.isFinite(n)) return '–';
  if (Math.abs(n) < 10000) return rate(n);
  for (const [size, unit] of [[1e12, 'T'], [1e9, 'B'], [1e6, 'M'], [1e3, 'k']]) {
    if (Math.abs(n) >= size) return decimal.format(n / size) + unit;
  }
  return rate(n);
}

export function micros(us) {
  if (!Number.isFinite(us)) return '–';
  if (us < 1000) return `${decimal.format(us)} µs`;
  if (us < 1e6) return `${decimal.format(us / 1e3)} ms`;
  return `${decimal.format(us / 1e6)} s`;
}

/** 4200 → "4.2 s", 90000 → "1 min 30 s", 90000000 → "1 d 1 h". */
export function span(ms) {
  if (!Number.isFinite(ms)) return '–';
  if (ms < 1000) return `${Math.ceil(ms)} ms`;
  if (ms < 60000) return `${decimal.format(ms / 1000)} s`;
  const seconds = Math.ceil(ms / 1000);
  const parts = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']]
    .map(([size, unit], i, all) => [Math.floor((i ? seconds % all[i - 1][0] : seconds) / size), unit])
    .filter(([n]) => n > 0);
  return parts.slice(0, 2).map(([n, unit]) => `${n} ${unit}`).join(' ');
}

const clockFormat = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const dayFormat = new Intl.DateTimeFormat('en-GB', {
  year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit',
});

/** Accepts ISO text, milliseconds or seconds. */
export function toDate(value) {
  if (typeof value === 'number') return new Date(value < 1e11 ? value * 1000 : value);
  return new Date(value);
}

export function time(value) {
  const date = toDate(value);
  return Number.isNaN(date.getTime()) ? '–' : clockFormat.format(date);
}

export function moment(value) {
  const date = toDate(value);
  return Number.isNaN(date.getTime()) ? '–' : dayFormat.format(date);
}

/** Times are shown in the browser's zone; the command line and the logs use UTC. */
export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || 'local time';

/** "1h30m", as in quotas, → "1 h 30 min", as everywhere else on the pages. */
export const inUnits = (text) => text.replace(/(\d+)(ms|s|m|h|d)(?=\d|$)/g, (_, n, unit) => `${n} ${unit === 'm' ? 'min' : unit} `).trim();

// Characters that change the direction of text, are invisible, or end a line.
const ODD = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;
export const LONGEST = 160;

/** Splits a name into [text, isOdd] pieces; such characters are written like U+202E. */
export function pieces(name, longest = LONGEST) {
  const text = String(name);
  const cut = text.length > longest ? text.slice(0, longest) : text;
  const found = [];
  let plain = '';
  for (const char of cut) {
    if (!ODD.test(char)) {
      plain += char;
      continue;
    }
    if (plain) found.push([plain, false]);
    plain = '';
    found.push([`U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`, true]);
  }
  if (plain) found.push([plain, false]);
  if (cut.length < text.length) found.push([`… ${count(text.length - cut.length)} more`, true]);
  return found;
}

/** The same as one string, for labels and questions. */
export function plainName(name, longest = 80) {
  return pieces(name, longest).map(([text, odd]) => (odd ? `⟨${text}⟩` : text)).join('');
}

/** Decodes the %XX in bucket names. */
export function fromBucket(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** How a policy charges, if not in the default way: ['leased', 'overdraw', 'charge each']. */
export const chargingWords = (policy) => [{ leased: 'leased', rate_leased: 'rate leased' }[policy.mode], policy.overdraw && 'overdraw',
  policy.charge && policy.charge !== 'all_or_none' && `charge ${policy.charge}`].filter(Boolean);
