// The admin operations of a running server: `POST /operations/NAME` on its local socket, which only the owner of the data folder can open.

import type { OnProgress } from '../../../db/read/slices.ts'
import { describeError, Fault, tellForCommands } from '../../fault.ts'
import { readBody } from '../../http/body.ts'
import { json, jsonInSlices, statusOf } from '../../http/reply.ts'
import { socketBodyBytesMax } from '../../limits.ts'
import type { Log } from '../../observe/log.ts'
import type { Handler } from '../../runtime/listener.ts'
import { decodeUtf8 } from '../../values/bytes.ts'
import type { RunByName } from '../operation/operation.ts'
import { fromHeaders } from './local-user.ts'
import { respondWithProgress } from './progress.ts'
import { storageFault } from './storage-fault.ts'

/**
 * Errors carry the fault's own code, `{ "error": { "code": "not_found", "message": …, "reason": … } }`: the commands print the message, and
 * may act on the reason.
 */
export function createSocketHandler(runByName: RunByName, databasePath: string, log: Log): Handler {
  const run = async (request: Request, onProgress?: OnProgress): Promise<Response> => {
    try {
      const name = /^\/operations\/([a-z_.]+)$/.exec(new URL(request.url).pathname)?.[1]
      if (name === undefined || request.method !== 'POST') throw new Fault('not_found', 'Send POST /operations/NAME')
      const text = decodeUtf8(await readBody(request, socketBodyBytesMax)) ?? ''
      const actor = { kind: 'local' as const, ...fromHeaders(request) }
      return jsonInSlices(200, await runByName(name, parseInput(text), actor, onProgress))
    } catch (error) {
      const fault = toFault(error, databasePath)
      if (!(error instanceof Fault) || error.code === 'internal')
        log('error', 'operation_failed', { reason: describeError(fault) })
      const { code, reason } = fault
      return json(statusOf(fault), { error: { code, message: tellForCommands(fault), reason } })
    }
  }
  return (request) => respondWithProgress(request, (onProgress) => run(request, onProgress))
}

function toFault(error: unknown, databasePath: string): Fault {
  if (error instanceof Fault) return error
  return storageFault(error, databasePath) ?? new Fault('internal', 'Internal server error', { cause: error })
}

function parseInput(text: string): unknown {
  try {
    return text === '' ? {} : JSON.parse(text)
  } catch {
    throw new Fault('invalid', 'The input is not valid JSON; send a JSON object')
  }
}
