// Reads the files that commands send: UTF-8 text of limited size, and JSON.
import { closeSync, openSync, readSync } from 'node:fs'
import { Fault } from '../../src/fault.ts'
import { operationBodyBytesMax } from '../../src/limits.ts'
import { describeReadFailure } from '../../src/runtime/file-access.ts'
import { decodeUtf8 } from '../../src/values/bytes.ts'

/** Reads a JSON file, such as a JWKS. */
export function readJsonFile(path: string, bytesMax?: number): unknown {
  const text = readTextFile(path, bytesMax)
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Fault('usage', `${JSON.stringify(path)} is not valid JSON: ${(error as Error).message}`)
  }
}

/**
 * Reads a text file, such as certificates; `-` is standard input. The size is limited, because a device can be endless.
 */
export function readTextFile(path: string, bytesMax = operationBodyBytesMax): string {
  const bytes = Buffer.alloc(bytesMax)
  let length = 0
  try {
    const file = path === '-' ? 0 : openSync(path, 'r')
    for (;;) {
      const read = readSync(file, bytes, length, bytes.byteLength - length, null)
      length += read
      if (read === 0 || length === bytes.byteLength) break
    }
    if (file !== 0) closeSync(file)
  } catch (error) {
    throw new Fault('usage', `${JSON.stringify(path)} cannot be read: ${describeReadFailure(path, error)}`)
  }
  if (length === bytes.byteLength)
    throw new Fault('usage', `${JSON.stringify(path)} must be smaller than ${bytes.byteLength} bytes`)
  const text = decodeUtf8(bytes.subarray(0, length))
  if (text === undefined) throw new Fault('usage', `${JSON.stringify(path)} must be text in UTF-8`)
  return text
}
