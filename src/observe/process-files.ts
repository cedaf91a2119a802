// How many files and connections this process has open, and how many it may have. Linux says it under /proc.
import { readdir, readFile } from 'node:fs/promises'

/** Undefined where the system does not say. `most` is infinite without a limit. */
export async function readOpenFiles(): Promise<{ open: number; most: number } | undefined> {
  try {
    const [open, limits] = await Promise.all([readdir('/proc/self/fd'), readFile('/proc/self/limits', 'utf8')])
    const [, most] = /^Max open files +(\d+|unlimited)/m.exec(limits) ?? []
    // Reading the list takes one itself.
    return { open: open.length - 1, most: most === undefined || most === 'unlimited' ? Infinity : Number(most) }
  } catch {
    return undefined
  }
}
