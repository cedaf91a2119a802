// The response of an inference server to `/models`: read up to a limit, and the models in it.

import { Fault } from '../../fault.ts'
import { upstreamListBytesMax } from '../../limits.ts'
import { readBounded } from '../../runtime/bounded-stream.ts'

export type Model = { id: string }

/** The whole body of a response. @throws Fault `bad_gateway` beyond `upstreamListBytesMax` */
export function readListBody({ body }: Response): Promise<Uint8Array<ArrayBuffer>> {
  const tooLarge = () => listFailed(`sent a response of more than ${upstreamListBytesMax} bytes`)
  return readBounded(body, { bytesMax: upstreamListBytesMax, tooLarge })
}

/** The fault of an upstream whose list is of no use. `what` continues a sentence about it. */
export function listFailed(what: string, why: { detail?: string; cause?: unknown } = {}): Fault {
  return new Fault('bad_gateway', `The inference server ${what}; its administrator finds the reason in the log`, {
    reason: 'upstream_list',
    ...why,
  })
}

/** The entries that have a name; undefined when the body is not a list. Ollama writes an empty list as null. */
export function modelsIn(body: Uint8Array): Model[] | undefined {
  const { data } = Object(parse(body)) as { data?: unknown }
  if (data === null) return []
  return Array.isArray(data) ? data.filter(isModel) : undefined
}

/** The model that a body is, if it has a name. */
export function modelIn(body: Uint8Array): Model | undefined {
  const model = parse(body)
  return isModel(model) ? model : undefined
}

function isModel(value: unknown): value is Model {
  return typeof (value as Model | null | undefined)?.id === 'string'
}

function parse(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString())
  } catch {
    return undefined
  }
}
