// What a body may not use of the state that upstreams keep: work that outlives its request, which the ledger could not
// charge; and, where a setting says so, what all callers share through the credential of an upstream.
import { Fault } from '../fault.ts'
import { giveWayAfter } from '../http/body.ts'
import type { Fields } from '../presets/schema/fields.ts'
import { createPause, giveWay } from '../scheduling/give-way.ts'
import type { Call } from './call.ts'
import { isObject } from './usage.ts'

/** Members of the body that continue what was stored before, if they are not null. */
const continuingNames = ['previous_response_id', 'conversation', 'container']
/** Members at any place that name what is stored, by an id or a list of ids. A schema describes them as an object. */
const idNames = new Set(['file_id', 'file_ids', 'vector_store_ids', 'container'])

/**
 * A response in the background goes on without its request, so that its usage never arrives here.
 * @throws Fault `invalid`
 */
export function rejectBackground({ path, fields: { background } }: Call): void {
  if (!path.takesBackground || background === undefined || background === null || background === false) return
  throw new Fault(
    'invalid',
    'background must be false: a response in the background could not be charged or stopped. Set stream to true instead',
    { reason: 'background' },
  )
}

/**
 * Refuses references to what an upstream stored for an earlier request, perhaps of another caller. Yields to other
 * requests within a large body.
 * @throws Fault `invalid` that names the member
 */
export async function rejectSharedState({ fields, json }: Call): Promise<void> {
  for (const name of continuingNames) if (isUsed(fields[name])) throw shared(name)
  if (Array.isArray(fields.input) && fields.input.some(isItemReference)) throw shared('input with item_reference')
  if (json !== undefined) await giveWayAfter(json.bytes)
  const pause = createPause()
  const waiting: object[] = [{ ...fields, metadata: undefined }]
  for (let part = waiting.pop(); part !== undefined; part = waiting.pop()) {
    for (const [name, value] of Object.entries(part)) {
      if (idNames.has(name) && isIds(value)) throw shared(name)
      if (isObject(value)) waiting.push(value)
      if (pause.isDueAfter(1)) await giveWay()
    }
  }
}

function isUsed(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** Its type may be left out. */
function isItemReference(item: unknown): boolean {
  if (!isObject(item)) return false
  const { type, role, id } = item as Fields
  return type === 'item_reference' || (!isUsed(type) && !isUsed(role) && isUsed(id))
}

function isIds(value: unknown): boolean {
  return typeof value === 'string' || (Array.isArray(value) && value.some((id) => typeof id === 'string'))
}

function shared(name: string): Fault {
  return new Fault(
    'invalid',
    `This server does not accept ${name}: callers share what an upstream stores. Send the whole conversation and the content of files`,
    { reason: 'shared_state' },
  )
}
