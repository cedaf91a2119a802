// Copies the files of an open database in two passes: a draft while its holder goes on, then what has changed, while the holder holds its
// checkpoints. Use it only in a process that holds no database: closing a descriptor of the file releases the lock of the whole process.
import { constants } from 'node:fs'
import { chmod, copyFile, type FileHandle, open, rm } from 'node:fs/promises'

/** Called with the bytes copied so far and the total. */
type OnBytes = (done: number, total: number) => void

const pieceBytes = 4 * 1024 * 1024
/** Flushed this often, the copy delays a flush of the holder's file by the time of one such part, some 30 ms. */
const flushBytes = 8 * 1024 * 1024

/**
 * Copies the main file, mode 0600, to a new file. The holder may change it meanwhile. Where the file system can share blocks, nothing is
 * copied yet.
 * @throws the error of the file system
 */
export async function draftCopy(path: string, to: string, onBytes: OnBytes): Promise<void> {
  if (await cloneFile(path, to)) await rm(to)
  else await copyWhole(path, to, onBytes)
}

/**
 * Completes a draft, and copies the write-ahead log. The holder must stop its checkpoints from before the call until it returns: then the main
 * file does not change and the log only grows. The copy contains every commit that was acknowledged before the call. SQLite ignores an
 * incomplete one at the end of the log.
 * @throws the error of the file system
 */
export async function completeCopy(path: string, to: string): Promise<void> {
  if (!(await cloneFile(path, to))) await withBoth(path, to, 'r+', copyChanges)
  await copyLog(`${path}-wal`, `${to}-wal`)
}

/** Shares the blocks of the file, which takes no time and no space. */
async function cloneFile(path: string, to: string): Promise<boolean> {
  try {
    await copyFile(path, to, constants.COPYFILE_FICLONE_FORCE | constants.COPYFILE_EXCL)
    await chmod(to, 0o600)
    return true
  } catch {
    return false
  }
}

function copyWhole(path: string, to: string, onBytes: OnBytes): Promise<void> {
  return withBoth(path, to, 'wx', (from, into) => copyPieces(from, into, onBytes))
}

async function withBoth(
  path: string,
  to: string,
  mode: 'wx' | 'r+',
  copy: (from: FileHandle, into: FileHandle) => Promise<void>,
): Promise<void> {
  const from = await open(path, 'r')
  try {
    const into = await open(to, mode, 0o600)
    try {
      await copy(from, into)
    } finally {
      await into.close()
    }
  } finally {
    await from.close()
  }
}

async function copyPieces(from: FileHandle, into: FileHandle, onBytes: OnBytes): Promise<void> {
  const { size } = await from.stat()
  const piece = Buffer.allocUnsafe(Math.min(pieceBytes, Math.max(size, 1)))
  let flushedAt = 0
  for (let done = 0; done < size; ) {
    const read = await readPiece(from, piece, done, size)
    if (read.length === 0) return
    await writeWhole(into, read, done)
    done += read.length
    if (done - flushedAt >= flushBytes) {
      await into.datasync()
      flushedAt = done
    }
    onBytes(done, size)
  }
}

/** Reading both files takes a fraction of the time of writing one. */
async function copyChanges(from: FileHandle, into: FileHandle): Promise<void> {
  const { size } = await from.stat()
  const [piece, known] = [Buffer.allocUnsafe(pieceBytes), Buffer.allocUnsafe(pieceBytes)]
  for (let done = 0; done < size; ) {
    const read = await readPiece(from, piece, done, size)
    if (read.length === 0) return
    if (!read.equals(await readPiece(into, known, done, size))) await writeWhole(into, read, done)
    done += read.length
  }
  await into.truncate(size)
}

async function readPiece(file: FileHandle, into: Buffer, at: number, end: number): Promise<Buffer> {
  const { bytesRead } = await file.read(into, 0, Math.min(into.length, end - at), at)
  return into.subarray(0, bytesRead)
}

async function writeWhole(into: FileHandle, bytes: Uint8Array, at: number): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const { bytesWritten } = await into.write(bytes, written, bytes.length - written, at + written)
    written += bytesWritten
  }
}

const logHeaderBytes = 32

/**
 * The first commit after a checkpoint starts the log from the beginning, under a new header, and overwrites it. That
 * can happen once while checkpoints are held; the log is then copied again.
 */
async function copyLog(path: string, to: string): Promise<void> {
  for (;;) {
    const before = await readLogHeader(path)
    await rm(to, { force: true })
    if (before !== undefined) await copyWhole(path, to, () => {})
    if ((await readLogHeader(path)) === before) return
  }
}

/** Undefined while there is no log. */
async function readLogHeader(path: string): Promise<string | undefined> {
  const file = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (file === undefined) return undefined
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(logHeaderBytes), 0, logHeaderBytes, 0)
    return bytesRead < logHeaderBytes ? undefined : buffer.toString('hex')
  } finally {
    await file.close()
  }
}
