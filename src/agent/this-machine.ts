// The outside world of the agent on this machine: environment, files, network and programs.
import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import type { Platform } from './identity-token.ts'

const outputBytesMax = 64 * 1024
const programMilliseconds = 30_000

export const thisMachine: Platform = {
  environment: process.env,
  readFile: (path) => readFile(path, 'utf8'),
  fetch: (url, init) => fetch(url, init),
  run: runProgram,
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
