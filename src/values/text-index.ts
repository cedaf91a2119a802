// Finds numbers by text and holds no text, only a hash of each: a map of 100,000 texts takes more time to fill and ten times the memory.

const slotsFirst = 1_024

export type TextIndex = {
  /** Adds a number under the text with this hash. */
  add: (hash: number, number: number) => void
  /** Returns the number that was added under the text. `isIt` compares the text itself: others can have the same hash. */
  find: (text: string, isIt: (number: number) => boolean) => number | undefined
}

export function createTextIndex(): TextIndex {
  // Each slot is a hash and a number plus one; zero is a free slot. At most half of the slots are in use.
  let slots = new Int32Array(2 * slotsFirst)
  let used = 0

  function put(hash: number, stored: number): void {
    const mask = slots.length - 2
    let at = (hash << 1) & mask
    while (slots[at + 1] !== 0) at = (at + 2) & mask
    slots[at] = hash
    slots[at + 1] = stored
  }
  function grow(): void {
    const before = slots
    slots = new Int32Array(2 * before.length)
    for (let at = 0; at < before.length; at += 2) {
      const stored = before[at + 1] ?? 0
      if (stored !== 0) put(before[at] ?? 0, stored)
    }
  }

  return {
    add: (hash, number) => {
      used += 1
      if (used * 4 > slots.length) grow()
      put(hash, number + 1)
    },
    find: (text, isIt) => {
      const hash = hashText(text)
      const mask = slots.length - 2
      for (let at = (hash << 1) & mask; ; at = (at + 2) & mask) {
        const stored = slots[at + 1] ?? 0
        if (stored === 0) return undefined
        if (slots[at] === hash && isIt(stored - 1)) return stored - 1
      }
    },
  }
}

/** The hash of a text whose characters are added one by one, beginning with 0. */
export function addToHash(hash: number, character: number): number {
  return (Math.imul(hash, 31) + character) | 0
}

/** Spreads the hash over all bits, of which an index uses the lowest. */
export function finishHash(hash: number): number {
  return Math.imul(hash ^ (hash >>> 15), 0x85ebca6b)
}

function hashText(text: string): number {
  let hash = 0
  for (let at = 0; at < text.length; at++) hash = addToHash(hash, text.charCodeAt(at))
  return finishHash(hash)
}
