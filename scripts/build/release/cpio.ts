// Archives for cpio in the format `newc`, which packages of RPM contain.
import { type Archive, type Entry, isFolder, padding } from './entry.ts'

/** The mode of an entry with its type, as `stat` gives it. */
export function typedMode(entry: Entry): number {
  return (isFolder(entry) ? 0o040000 : 0o100000) | entry.mode
}

export function cpio({ entries, time }: Archive): Buffer {
  const parts = entries.flatMap((entry, index) => {
    const content = entry.content ?? new Uint8Array()
    const name = `./${entry.path.replace(/\/$/, '')}`
    const numbers = [index + 1, typedMode(entry), 0, 0, isFolder(entry) ? 2 : 1, time, content.length]
    return [header(name, numbers), content, padding(content.length, 4)]
  })
  return Buffer.concat([...parts, header('TRAILER!!!', [0, 0, 0, 0, 1, 0, 0])])
}

/** Numbers: inode, mode, user, group, links, time, size. */
function header(name: string, numbers: readonly number[]): Buffer {
  const fields = [...numbers, 0, 0, 0, 0, Buffer.byteLength(name) + 1, 0]
  const text = `070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}${name}\0`
  return Buffer.concat([Buffer.from(text), padding(Buffer.byteLength(text), 4)])
}
