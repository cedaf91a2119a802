// The files of the admin page as a server sends them, compared with what this runtime reads from the repository. Web standards and
// node:assert alone.
import assert from 'node:assert/strict'
import { assets } from '../../src/page/assets.ts'

/** @throws AssertionError unless every file is sent as it is. `url` ends in `/admin/`. */
export async function hasPageFiles(url: string): Promise<void> {
  for (const [name, text] of assets) {
    const response = await fetch(name === 'index.html' ? url : `${url}assets/${name}`)
    assert.equal(response.status, 200, name)
    assert.equal(await response.text(), text, name)
  }
}
