// The names of what an address names by its id. `const nameOf = createNames(page)` reads each name once; until it arrives, and
// where it cannot be read, the id stands for it.
/** @import { Page } from '../types.ts' */
import { get, segment } from './client.js'

/** @param {Pick<Page, 'update'>} page @returns {(path: string, id: string) => string} */
export function createNames(page) {
  /** @type {Map<string, string>} */
  const names = new Map()
  return (path, id) => {
    const place = `${path}/${segment(id)}`
    const known = names.get(place)
    if (known !== undefined) return known
    names.set(place, id)
    void get(place).then(
      ({ data }) => {
        names.set(place, data.name)
        page.update()
      },
      () => {},
    )
    return id
  }
}
