// Resets the usage of a key, a bucket or a request after a confirmation.

import { post } from './api.js';
import { confirm, toast } from './parts.js';
import { plainName } from './text.js';

/** `subject`: { key }, { bucket } or entries, as the admin API takes them. True if it was reset. */
export async function resetAfterAsking(subject, label) {
  if (!await confirm('Reset this key?', [`“${plainName(label)}” gets its full limit back.`, 'This cannot be undone.'], 'Reset')) return false;
  try {
    const { held } = await post(`/admin/reset?${new URLSearchParams(subject)}`);
    toast(held ? 'The key was reset.' : 'The key had not used anything.');
    return true;
  } catch (error) {
    toast(error.message, 'bad');
    return false;
  }
}
