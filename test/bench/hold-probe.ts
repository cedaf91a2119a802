// Loaded into a server before its program (`bun --preload`): measures how long its event loop is held, by the clock, since a disk that is
// waited for holds it too. On SIGUSR2 it writes the longest hold since the last signal to the file that HOLD_PROBE names, in milliseconds.
import { renameSync, writeFileSync } from 'node:fs'

const path = process.env.HOLD_PROBE ?? ''
let longest = 0
let last = performance.now()
setInterval(() => {
  const now = performance.now()
  longest = Math.max(longest, now - last - 1)
  last = now
}, 1).unref()

process.on('SIGUSR2', () => {
  writeFileSync(`${path}.next`, String(longest))
  renameSync(`${path}.next`, path)
  longest = 0
})
