// What an admin operation is, and how one is run: input checked against its shape, changes one at a time, database conflicts mapped.
import { LibsqlError } from '@libsql/core/api'
import { mapInSlices } from '../../../db/read/pace.ts'
import type { OnProgress } from '../../../db/read/slices.ts'
import type { Role } from '../../../db/schema/value-names.ts'
import type { Actor } from '../../../db/tables/admin-changes.ts'
import type { Basis } from '../../../db/write/change-queue.ts'
import { Fault } from '../../fault.ts'
import { checkKeyState } from '../../keys/api-key.ts'
import { actOf, checkRole } from '../../keys/roles.ts'
import { sessionEnded } from '../../page/sessions.ts'
import { checkShape, type type } from '../../values/shape.ts'
import { mapStale } from './commit.ts'
import type { Needs, OperationRun } from './context.ts'

/** With the defaults, an operation of any context. */
export type Operation<Input extends type.Any = type.Any, Response = unknown, Context = never> = {
  /** The shape of what it takes. */
  readonly input: Input
  /** Operations that change something run one after the other, so that what one has read is still true when it writes. */
  readonly mutates: boolean
  /** Checks the input; what it returns does the work. @throws Fault `invalid` */
  readonly prepare: (value: unknown) => Promise<(context: Context) => Promise<Response>>
}

type Check = <Input>(shape: (value: unknown) => Input | type.errors, value: unknown) => Input | Promise<Input>

/**
 * Binds a shape to the function that takes what the shape accepts, and a context with what the function needs. `check`: instead of
 * `checkShape`, for an input that takes long.
 */
export function operation<Input extends type.Any, Response, Context>(
  input: Input,
  run: (context: Context, input: Input['infer']) => Promise<Response>,
  { mutates = false, check = checkShape }: { mutates?: boolean; check?: Check } = {},
): Operation<Input, Response, Context> {
  const prepare = async (value: unknown) => {
    const checked: Input['infer'] = await check(input, value)
    return (context: Context) => run(context, checked)
  }
  return { input, mutates, prepare }
}

/**
 * Runs an operation by its name with an unchecked input, as both arrive from outside. Without an actor, a command or a client of the local
 * socket runs it.
 */
export type RunByName = (name: string, input: unknown, actor?: Actor, onProgress?: OnProgress) => Promise<unknown>

/** What the runner itself needs. */
export type RunnerContext = Needs<'registry' | 'follow' | 'work' | 'runExclusive' | 'page' | 'now'>

/**
 * Runs the operations of one database. Returns what `JSON.stringify` would keep, so that a caller in this process and one behind the socket
 * read the same.
 * @throws Fault as the operation does; `not_found` for a name that no operation has
 */
export function createOperationRunner<Context extends RunnerContext>(
  operations: Readonly<Record<string, Operation<type.Any, unknown, Context & OperationRun>>>,
  context: Context,
): RunByName {
  return async (name, value, actor = { kind: 'local' }, onProgress) => {
    const found = Object.hasOwn(operations, name) ? operations[name] : undefined
    if (found === undefined) throw new Fault('not_found', `There is no operation ${JSON.stringify(name)}`)
    const role = roleOf(actor, context)
    // Only a key or a session is bound to the table of roles.
    if (actor.kind === 'key') checkRole(role, actOf(name, value))
    const run = await found.prepare(value)
    const warnings: string[] = []
    const act = async (basis?: Basis) => {
      // An attempt that is repeated warns again.
      warnings.length = 0
      // The key, and the session, were valid when the request arrived, and must still be valid when the operation starts.
      roleOf(actor, context)
      const warn = (text: string) => warnings.push(text)
      const runWith = (report: OnProgress) =>
        run({ ...context, actor, role, operation: name, basis, onProgress: report, warn })
      return context.work.watch(name, runWith, onProgress)
    }
    const { follow, runExclusive } = context
    if (!found.mutates) await follow.fresh()
    const response = found.mutates ? runExclusive(() => follow.attempt(act)) : act()
    const plain = await toPlain(await response.catch(mapConflict))
    return warnings.length > 0 && typeof plain === 'object' ? { ...plain, warnings } : plain
  }
}

/** What `JSON.stringify` would keep. Each list of the response is converted row by row, since a long one takes long. */
async function toPlain(response: unknown): Promise<unknown> {
  if (typeof response !== 'object' || response === null || Array.isArray(response)) return copyOf(response)
  const lists = Object.entries(response).filter((entry): entry is [string, unknown[]] => Array.isArray(entry[1]))
  const plain = copyOf({ ...response, ...Object.fromEntries(lists.map(([name]) => [name, []])) }) as object
  const copies: [string, unknown[]][] = []
  for (const [name, rows] of lists) copies.push([name, await mapInSlices(rows, copyOf)])
  return { ...plain, ...Object.fromEntries(copies) }
}

function copyOf(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown
}

/** @throws Fault `unauthorized` for a key that is no longer in use, or a session that has ended */
function roleOf(actor: Actor, { registry, page, now }: Needs<'registry' | 'page' | 'now'>): Role {
  if (actor.kind !== 'key') return 'admin'
  const key = checkKeyState(registry.keys.get(actor.keyId), now())
  const session = actor.sessionId === undefined ? undefined : page?.sessions.get(actor.sessionId)
  if (actor.sessionId !== undefined && session === undefined) throw sessionEnded()
  const { role } = session?.key ?? key
  if (role === null) throw new Fault('forbidden', 'Only management keys can perform this operation')
  return role
}

/** A unique constraint decides if two changes pass the same check. */
function mapConflict(error: unknown): never {
  if (error instanceof LibsqlError && /UNIQUE constraint/.test(error.message)) {
    throw new Fault('conflict', 'This name or address is already in use; choose another one', { cause: error })
  }
  return mapStale(error)
}
