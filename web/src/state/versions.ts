/** The versions of files with the same name. */

interface Version {
  name: string;
  version: number;
}

export interface Versions<T> {
  newest: T;
  /** Earlier versions, the latest first. */
  earlier: T[];
}

/** Return the files with their versions; the file that was made last comes first. */
export function newestVersions<T extends Version>(files: readonly T[]): Array<Versions<T>> {
  const byName = new Map<string, T[]>();
  for (const file of files) {
    const versions = [...(byName.get(file.name) ?? []), file];
    byName.delete(file.name);
    byName.set(file.name, versions);
  }
  return [...byName.values()].toReversed().map((versions) => {
    const [newest, ...earlier] = versions.toSorted((a, b) => b.version - a.version);
    return { newest: newest as T, earlier };
  });
}
