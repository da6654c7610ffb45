// The algorithms of this service: their names and the numbers that they take. Read once.

import { get } from './api.js';

let known = [];

export async function readAlgorithms(signal) {
  if (known.length === 0) known = await get('/admin/algorithms', signal);
}
export const algorithms = () => known;
export const algorithmOf = (type) => known.find((a) => a.type === type);
