// The response of an inference server to `/models`: read up to a limit, and the models in it.

import { Fault } from '../../fault.ts'
import { readBounded } from '../../http/bounded-stream.ts'
import { upstreamListBytesMax } from '../../limits.ts'

export type Model = { id: string }

/** The whole body of a response. @throws Fault `bad_gateway` beyond `upstreamListBytesMax` */
export function readListBody({ body }: Response): Promise<Uint8Array<ArrayBuffer>> {
  const message = `The response of the inference server is larger than ${upstreamListBytesMax} bytes`
  return readBounded(body, { bytesMax: upstreamListBytesMax, tooLarge: () => new Fault('bad_gateway', message) })
}

/** The entries that have a name; undefined when the body is not a list. */
export function modelsIn(body: Uint8Array): Model[] | undefined {
  try {
    const { data } = JSON.parse(Buffer.from(body).toString()) as { data: unknown }
    return Array.isArray(data) ? (data as Model[]).filter((model) => typeof model?.id === 'string') : undefined
  } catch {
    return undefined
  }
}
