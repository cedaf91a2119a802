// The whole tiles that this process has just appended, as the files that a folder gets: nothing need be read or hashed again to publish them.
import { formatBundle, tileWidth } from './transparency/tiles.ts'

/** The bytes of a bundle of entries, and of the tile with their hashes. */
export type TileFiles = { bundle: Uint8Array; hashes: Uint8Array }

export type RecentTiles = {
  /** Takes leaves that were committed: their texts and hashes, from the leaf `first` on. */
  add: (first: number, texts: readonly string[], hashes: readonly Uint8Array[]) => void
  /** A tile of which every leaf was taken; undefined for any other. */
  find: (index: number) => TileFiles | undefined
  clear: () => void
}

/** About 20 MB. Tiles beyond are read from the database. */
const tilesMax = 512

export function createRecentTiles(): RecentTiles {
  const tiles = new Map<number, TileFiles>()
  /** The leaves of a tile that is not whole, up to `next`. */
  let [texts, hashes, next]: [string[], Uint8Array[], number] = [[], [], 0]

  function restart(at: number): void {
    texts = []
    hashes = []
    next = at
  }

  return {
    add: (first, addedTexts, addedHashes) => {
      // Another process has appended in between.
      if (first !== next) restart(first)
      for (const [index, text] of addedTexts.entries()) {
        if (next % tileWidth === 0) restart(next)
        texts.push(text)
        hashes.push(addedHashes[index] as Uint8Array)
        next += 1
        if (texts.length < tileWidth || tiles.size >= tilesMax) continue
        const bundle = formatBundle(texts.map((each) => Buffer.from(each)))
        tiles.set(next / tileWidth - 1, { bundle, hashes: Buffer.concat(hashes) })
      }
    },
    find: (index) => tiles.get(index),
    clear: () => tiles.clear(),
  }
}
