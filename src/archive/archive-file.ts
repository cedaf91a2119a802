// An archive as a file: gzip NDJSON, written under a temporary name and renamed once it is on disk, and read back as a digest. It compresses
// on the thread pool.
import { createHash } from 'node:crypto'
import { createReadStream, lstatSync, type Stats, statSync } from 'node:fs'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Fault } from '../fault.ts'
import { describeReadFailure } from '../runtime/file-access.ts'

/** SHA-256 of the file, and its size. */
export type Written = { sha256: string; bytes: number }
/** `contentSha256` and `lines` are of the text inside. */
export type ReadBack = Written & { contentSha256: string; lines: number }

const fileMode = 0o600

/** A start needs no compression. */
const loadZlib = () => import('node:zlib')

/**
 * Writes the text as a gzip file, which survives a power loss once this resolves.
 * @throws Fault `unavailable` when the file cannot be written; no file has the name then
 */
export function writeArchiveFile(folder: string, file: string, texts: AsyncIterable<string>): Promise<Written> {
  return writeDurably(folder, file, async (write) => {
    const { createGzip } = await loadZlib()
    const hash = createHash('sha256')
    let bytes = 0
    await pipeline(Readable.from(texts), createGzip(), async (source: AsyncIterable<Buffer>) => {
      for await (const piece of source) {
        hash.update(piece)
        bytes += piece.length
        await write(piece)
      }
    })
    return { sha256: hash.digest('hex'), bytes }
  })
}

/** Writes a short text in the same way. */
export function writeTextFile(folder: string, file: string, text: string): Promise<void> {
  return writeDurably(folder, file, (write) => write(Buffer.from(text)))
}

async function writeDurably<Result>(
  folder: string,
  file: string,
  produce: (write: (piece: Buffer) => Promise<void>) => Promise<Result>,
): Promise<Result> {
  const [path, temporary] = [join(folder, file), join(folder, `${file}.partial`)]
  try {
    const handle = await open(temporary, 'w', fileMode)
    const result = await produce((piece) => writeAll(handle, piece))
      .then(async (produced) => {
        await handle.sync()
        return produced
      })
      .finally(() => handle.close())
    await rename(temporary, path)
    await syncFolder(folder)
    return result
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {})
    throw writeFault(path, error)
  }
}

async function writeAll(handle: FileHandle, piece: Buffer): Promise<void> {
  for (let written = 0; written < piece.length; )
    written += (await handle.write(piece, written, piece.length - written)).bytesWritten
}

/** Without it, a power loss can undo the rename. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  await handle.sync().finally(() => handle.close())
}

/** Errors of files have a code; everything else, such as a read of the database, keeps its error. */
function writeFault(path: string, error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (error instanceof Fault || code === undefined || !/^E[A-Z]+$/.test(code)) return error
  const folder = JSON.stringify(dirname(path))
  const message =
    code === 'ENOSPC' || code === 'EDQUOT'
      ? `The disk that holds the archive folder ${folder} is full; free some space and try again`
      : `The archive ${JSON.stringify(path)} could not be written: ${(error as Error).message}; check the folder and try again`
  return new Fault('unavailable', message, { cause: error })
}

/**
 * Reads the whole file.
 * @throws Fault `unavailable` that says what is wrong with the file
 */
export async function readArchiveFile(path: string, databasePath: string): Promise<ReadBack> {
  checkIsArchive(path, databasePath)
  const [file, content] = [createHash('sha256'), createHash('sha256')]
  let bytes = 0
  let lines = 0
  const digest = async function* (source: AsyncIterable<Buffer>) {
    for await (const piece of source) {
      file.update(piece)
      bytes += piece.length
      yield piece
    }
  }
  const { createGunzip } = await loadZlib()
  try {
    await pipeline(createReadStream(path), digest, createGunzip(), async (source: AsyncIterable<Buffer>) => {
      for await (const piece of source) {
        content.update(piece)
        lines += countLines(piece)
      }
    })
  } catch (error) {
    throw unreadable(path, (error as Error).message, error)
  }
  return { sha256: file.digest('hex'), bytes, contentSha256: content.digest('hex'), lines }
}

/** Yields the lines of a gzip file. @throws Error of the file system or of the compression */
export async function* linesOf(path: string): AsyncGenerator<string> {
  const { createGunzip } = await loadZlib()
  const [source, content, decoder] = [createReadStream(path), createGunzip(), new TextDecoder()]
  source.on('error', (error) => content.destroy(error))
  let rest = ''
  try {
    for await (const piece of source.pipe(content) as AsyncIterable<Buffer>) {
      const lines = (rest + decoder.decode(piece, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      yield* lines
    }
    if (rest !== '') yield rest
  } finally {
    source.destroy()
  }
}

/**
 * Finds the first line of an archive that has a text. Reads on until then, a piece at a time.
 * @throws Fault `unavailable` that says what is wrong with the file
 */
export async function findArchivedLine(path: string, databasePath: string, text: string): Promise<string | undefined> {
  checkIsArchive(path, databasePath)
  try {
    for await (const line of linesOf(path)) if (line.includes(text)) return line
    return undefined
  } catch (error) {
    throw unreadable(path, (error as Error).message, error)
  }
}

/**
 * Closing any descriptor of the database file would drop this process's lock on it.
 * @throws Fault `unavailable` for a path that must not be opened
 */
export function checkIsArchive(path: string, databasePath: string): void {
  const found = lstatOf(path)
  const database = statSync(databasePath, { throwIfNoEntry: false })
  if (found === undefined) throw unreadable(path, 'the file does not exist')
  if (!found.isFile()) throw unreadable(path, 'it is not a regular file')
  if (found.ino === database?.ino && found.dev === database.dev) throw unreadable(path, 'it is the database')
}

function lstatOf(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false })
  } catch (error) {
    throw unreadable(path, describeReadFailure(path, error), error)
  }
}

export function unreadable(path: string, why: string, cause?: unknown): Fault {
  return new Fault('unavailable', `The archive ${JSON.stringify(path)} is missing or damaged: ${why}`, { cause })
}

const newline = 0x0a

function countLines(piece: Buffer): number {
  let lines = 0
  for (let at = piece.indexOf(newline); at >= 0; at = piece.indexOf(newline, at + 1)) lines += 1
  return lines
}
