import { expect, test } from 'vitest';
import { newestVersions } from '../../src/state/versions';

test('versions of a name are one entry, and the file that was made last comes first', () => {
  const files = [
    { name: 'a', version: 1 },
    { name: 'b', version: 1 },
    { name: 'a', version: 2 },
    { name: 'c', version: 1 },
    { name: 'a', version: 3 },
  ];
  expect(newestVersions(files)).toEqual([
    { newest: { name: 'a', version: 3 }, earlier: [{ name: 'a', version: 2 }, { name: 'a', version: 1 }] },
    { newest: { name: 'c', version: 1 }, earlier: [] },
    { newest: { name: 'b', version: 1 }, earlier: [] },
  ]);
});
