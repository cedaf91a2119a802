// The outside world of the agent on this machine: environment, files, network and programs.
import { spawn } from 'node:child_process'
import { open } from 'node:fs/promises'
import { fetchFromHere } from './direct-fetch.ts'
import type { Platform } from './identity-token.ts'
import { fetchJwtSvid } from './spiffe-workload-api.ts'

const outputBytesMax = 64 * 1024
const fileBytesMax = 64 * 1024
const programMilliseconds = 30_000

export const thisMachine: Platform = {
  environment: process.env,
  folder: process.cwd(),
  readFile: readSmallFile,
  fetch: fetchFromHere,
  run: runProgram,
  fetchSvid: fetchJwtSvid,
  // Workloads never need the library.
  findIdToken: async (login) => {
    const { findIdToken } = await import('./login-token.ts')
    return findIdToken(login, { environment: process.env, fetch: fetchFromHere, now: Date.now })
  },
}

/** Reads at most 64 KB, and rejects for more: a device or a wrong path can be endless. */
async function readSmallFile(path: string): Promise<string> {
  const file = await open(path)
  try {
    const buffer = Buffer.alloc(fileBytesMax + 1)
    let bytes = 0
    for (;;) {
      const { bytesRead } = await file.read(buffer, bytes, buffer.byteLength - bytes)
      bytes += bytesRead
      if (bytes > fileBytesMax) throw Object.assign(new Error('the file is longer than 64 KB'), { code: 'EFBIG' })
      if (bytesRead === 0) return buffer.toString('utf8', 0, bytes)
    }
  } finally {
    await file.close()
  }
}

/** Runs a program, whose errors go to standard error of this process. Kills it after 30 seconds or 64 KB of output. */
function runProgram(program: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    const chunks: Buffer[] = []
    let bytes = 0
    const stop = (reason: string) => {
      child.kill('SIGKILL')
      child.stdout.destroy()
      reject(new Error(reason))
    }
    const timer = setTimeout(
      () => stop(`it did not end within ${programMilliseconds / 1000} seconds`),
      programMilliseconds,
    )
    child.stdout.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      bytes += chunk.byteLength
      if (bytes > outputBytesMax) stop('it printed more than 64 KB')
    })
    child.on('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(timer)
      reject(new Error(error.code === 'ENOENT' ? `${program} was not found; is it in PATH?` : error.message))
    })
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      if (code === 0) resolve(Buffer.concat(chunks).toString('utf8'))
      else reject(new Error(`it ended with ${signal ?? `exit code ${code}`}`))
    })
  })
}
