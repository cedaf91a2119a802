// Loads a library at its first use, for those that take long to load and that most processes never need.
import { createRequire } from 'node:module'

/**
 * Returns a function that loads the library once, synchronously. `load` is a `require` of the name as it stands, since a
 * bundler follows nothing else; Deno defines no `require` in a module and loads by name.
 */
export function deferLibrary<Library>(name: string, load: () => Library): () => Library {
  let library: Library | undefined
  return () => {
    library ??= typeof require === 'function' ? load() : (createRequire(import.meta.url)(name) as Library)
    return library
  }
}
