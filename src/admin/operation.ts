// What an admin operation is, and how one is run: input checked against its shape, changes one at a time, database conflicts told as such.
import { LibsqlError } from '@libsql/client'
import type { Actor } from '../../db/admin-changes.ts'
import { mapInSlices } from '../../db/pace.ts'
import type { OnProgress } from '../../db/slices.ts'
import { Fault } from '../fault.ts'
import { isList } from '../http/reply.ts'
import { checkKeyState } from '../keys/api-key.ts'
import type { RunExclusive } from '../values/mutex.ts'
import { checkShape, type type } from '../values/shape.ts'
import type { AdminContext } from './context.ts'

/** What an operation gets: the context, who asks, and its own name, which the record of its changes tells. */
export type OperationContext = AdminContext & {
  actor: Actor
  operation: string
  /** Told by reports, as they go on. */
  onProgress?: OnProgress | undefined
}

export type Operation = {
  /** Checks and narrows what came in; answers the errors otherwise. */
  readonly input: (value: unknown) => unknown
  /** Operations run one after the other, so that what one has read still holds when it writes. One that only waits for others steps aside. */
  readonly runsAlone: boolean
  readonly run: (context: OperationContext, input: never) => Promise<unknown>
}

/** Binds a shape to the function that takes what it accepts. */
export function operation<Input>(
  input: (value: unknown) => Input | type.errors,
  run: (context: OperationContext, input: Input) => Promise<unknown>,
  { runsAlone = true }: { runsAlone?: boolean } = {},
): Operation {
  return { input, runsAlone, run }
}

/** The same for what changes nothing: it neither waits for changes nor holds them up. */
export function reading<Input>(
  input: (value: unknown) => Input | type.errors,
  run: (context: OperationContext, input: Input) => Promise<unknown>,
): Operation {
  return operation(input, run, { runsAlone: false })
}

/** Without an actor it is a command, or whoever holds the local socket. What `onProgress` throws ends a report. */
export type RunOperation = (name: string, input: unknown, actor?: Actor, onProgress?: OnProgress) => Promise<unknown>

/**
 * The door to all admin operations of one database. Answers what `JSON.stringify` would keep, so that a caller in this process
 * and one behind the socket read the same.
 */
export function createOperationRunner(operations: Record<string, Operation>, context: AdminContext): RunOperation {
  return async (name, value, actor = { kind: 'local' }, onProgress) => {
    const found = Object.hasOwn(operations, name) ? operations[name] : undefined
    if (found === undefined) throw new Fault('not_found', `There is no operation ${JSON.stringify(name)}`)
    const input = checkShape(found.input, value)
    const act = async <Result>(work: () => Promise<Result>): Promise<Result> => {
      checkActor(actor, context)
      return work()
    }
    // An operation that steps aside may still wait for a turn of its own.
    const runExclusive: RunExclusive = (work) => context.runExclusive(() => act(work))
    const own = { ...context, runExclusive, actor, operation: name, onProgress }
    const run = () => found.run(own, input as never).catch(mapConflict)
    return toPlain(await (found.runsAlone ? runExclusive(run) : act(run)))
  }
}

/** What `JSON.stringify` would keep; of a list row by row, since one of many rows takes long. */
async function toPlain(answer: unknown): Promise<unknown> {
  if (!isList(answer)) return JSON.parse(JSON.stringify(answer)) as unknown
  const plain = JSON.parse(JSON.stringify({ ...answer, data: [] })) as object
  const data = await mapInSlices(answer.data, (row) => JSON.parse(JSON.stringify(row)) as unknown)
  return { ...plain, data }
}

/** The key was in force when its request arrived; what it asks for begins now. */
function checkActor(actor: Actor, { registry, now }: AdminContext): void {
  if (actor.kind === 'key') checkKeyState(registry.keys.get(actor.keyId), now())
}

/** A unique constraint is the last word on what an operation has already checked. */
function mapConflict(error: unknown): never {
  if (error instanceof LibsqlError && /UNIQUE constraint/.test(error.message)) {
    throw new Fault('conflict', 'Something of that name or address exists already', { cause: error })
  }
  throw error
}
