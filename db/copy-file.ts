// Copies the files of an open database. Use it only in a process that owns no database: closing a descriptor of the
// file releases the lock of the whole process. The owner holds its checkpoints meanwhile.
import { constants } from 'node:fs'
import { chmod, copyFile, type FileHandle, open, rm } from 'node:fs/promises'

/** Called with the bytes copied so far and the total. */
type OnBytes = (done: number, total: number) => void

const pieceBytes = 4 * 1024 * 1024
/** Flushing now and then keeps the owner's flush of its own file from waiting for the whole copy. */
const flushBytes = 32 * 1024 * 1024

/**
 * Copies the main file and the write-ahead log, mode 0600, to new files. The copy contains every commit that was acknowledged before the
 * call. Later commits only append to the log, and SQLite ignores an incomplete one at its end.
 * @throws the error of the file system
 */
export async function copyDatabase(path: string, to: string, onBytes: OnBytes): Promise<void> {
  if (!(await cloneFile(path, to))) await copyBytes(path, to, onBytes)
  await copyLog(`${path}-wal`, `${to}-wal`)
}

/** Shares the blocks of the file where the file system can, which takes no time and no space. */
async function cloneFile(path: string, to: string): Promise<boolean> {
  try {
    await copyFile(path, to, constants.COPYFILE_FICLONE_FORCE | constants.COPYFILE_EXCL)
    await chmod(to, 0o600)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw error
    return false
  }
}

async function copyBytes(path: string, to: string, onBytes: OnBytes): Promise<void> {
  const from = await open(path, 'r')
  try {
    const into = await open(to, 'wx', 0o600)
    try {
      const { size } = await from.stat()
      await copyPieces(from, into, size, onBytes)
    } finally {
      await into.close()
    }
  } finally {
    await from.close()
  }
}

async function copyPieces(from: FileHandle, into: FileHandle, size: number, onBytes: OnBytes): Promise<void> {
  const piece = Buffer.allocUnsafe(Math.min(pieceBytes, Math.max(size, 1)))
  let flushedAt = 0
  for (let done = 0; done < size; ) {
    const { bytesRead } = await from.read(piece, 0, Math.min(piece.length, size - done), done)
    if (bytesRead === 0) return
    await writeWhole(into, piece.subarray(0, bytesRead), done)
    done += bytesRead
    if (done - flushedAt >= flushBytes) {
      await into.datasync()
      flushedAt = done
    }
    onBytes(done, size)
  }
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
    if (before !== undefined) await copyBytes(path, to, () => {})
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
