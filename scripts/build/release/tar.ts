// Archives for tar in the format `ustar` (POSIX.1-1988), which every tar reads.
import { type Archive, type Entry, isFolder, padding } from './entry.ts'

const blockBytes = 512

/** Returns the archive. Fails for a path of more than 100 bytes. */
export function tar({ entries, time }: Archive): Buffer {
  const parts = entries.flatMap((entry) => {
    const content = entry.content ?? new Uint8Array()
    return [header(entry, content.length, time), content, padding(content.length, blockBytes)]
  })
  return Buffer.concat([...parts, Buffer.alloc(2 * blockBytes)])
}

function header(entry: Entry, size: number, time: number): Buffer {
  const { path, mode, link = '', owner = 0 } = entry
  if (Buffer.byteLength(path) > 100) throw new Error(`${path} is too long for an archive`)
  const block = Buffer.alloc(blockBytes)
  const octal = (value: number, digits: number) => value.toString(8).padStart(digits, '0')
  block.write(path, 0)
  block.write(octal(mode, 7), 100)
  block.write(octal(owner, 7), 108)
  block.write(octal(owner, 7), 116)
  block.write(octal(size, 11), 124)
  block.write(octal(time, 11), 136)
  // The sum is that of a header with spaces in its place.
  block.write(' '.repeat(8), 148)
  block.write(link === '' ? (isFolder(entry) ? '5' : '0') : '2', 156)
  block.write(link, 157)
  block.write('ustar\0' + '00', 257)
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${octal(sum, 6)}\0 `, 148)
  return block
}
