// What a deletion stops, shown by --dry-run and before the question that a deletion asks at a terminal. A command in a pipe does not ask:
// a script has decided, and there is nobody to answer.
import { createInterface } from 'node:readline/promises'
import type { OperationName } from '../../src/admin/operations.ts'
import { Fault } from '../../src/fault.ts'
import type { Config } from '../../src/settings/config.ts'
import { callOperation } from './call-operation.ts'
import { type Arguments, dependencies, print } from './command-line.ts'
import { few, printable } from './render.ts'

/** `stops`: the names of policies that issue no tokens without it. */
type Deletion = { kind: string; id: string; name: string; stops: string[] }
type OrganizationOption = { organization?: string | boolean }
type Preview = (config: Config, word: string, within: OrganizationOption) => Promise<Deletion>

const previews: Partial<Record<OperationName, Preview>> = {
  'keys.delete': async (config, key, within) => {
    const { id, name } = await callOperation(config, dependencies, 'keys.show', { key, ...within })
    const { data } = await callOperation(config, dependencies, 'policies.list', { key: id, ...within })
    return { kind: 'key', id, name, stops: enabledIn(data) }
  },
  'issuers.delete': async (config, issuer, within) => {
    const { id, name } = await callOperation(config, dependencies, 'issuers.show', { issuer, ...within })
    const { data } = await callOperation(config, dependencies, 'policies.list', { issuer: id, ...within })
    return { kind: 'issuer', id, name, stops: enabledIn(data) }
  },
  'policies.delete': async (config, policy, within) => {
    const { id, name, state } = await callOperation(config, dependencies, 'policies.show', { policy, ...within })
    return { kind: 'policy', id, name, stops: enabledIn([{ name, state }]) }
  },
  'budgets.delete': async (config, budget, within) => {
    const { id, name } = await callOperation(config, dependencies, 'budgets.show', { budget, ...within })
    return { kind: 'budget', id, name, stops: [] }
  },
  'webhooks.delete': async (config, webhook, within) => {
    const { id, name } = await callOperation(config, dependencies, 'webhooks.show', { webhook, ...within })
    return { kind: 'webhook', id, name, stops: [] }
  },
  'upstreams.remove': async (config, upstream) => {
    const { id, name } = await callOperation(config, dependencies, 'upstreams.show', { upstream })
    return { kind: 'upstream', id, name, stops: [] }
  },
}

export const deletionOptions = [
  ['--yes', 'do not ask for confirmation'],
  ['--dry-run', 'show what would stop, and delete nothing'],
] as const

export function isDeletion(name: OperationName): boolean {
  return previews[name] !== undefined
}

function enabledIn(policies: readonly { name: string; state: string }[]): string[] {
  return policies.flatMap(({ name, state }) => (state === 'enabled' ? [name] : []))
}

/**
 * Reports whether the deletion goes ahead. A dry run prints what would stop; at a terminal, a person must say yes.
 * @throws Fault if one of the objects does not exist, or the person does not say yes
 */
export async function mayDelete(name: OperationName, config: Config, { words, options }: Arguments): Promise<boolean> {
  const preview = previews[name]
  const asks =
    options.yes !== true && options.json !== true && process.stdin.isTTY === true && process.stdout.isTTY === true
  if (preview === undefined || (options.dryRun !== true && !asks)) return true
  const within = options.organization === undefined ? {} : { organization: options.organization }
  const found: Deletion[] = []
  for (const word of words) found.push(await preview(config, word, within))
  if (options.dryRun === true) {
    print(options.json === true ? JSON.stringify({ dry_run: true, data: found }, null, 2) : draw(found, 'Would delete'))
    return false
  }
  print(draw(found, 'This deletes'))
  if (!(await isConfirmed())) throw new Fault('conflict', 'Nothing was deleted')
  return true
}

function draw(found: readonly Deletion[], verb: string): string {
  return found
    .map(({ kind, name, stops }) => {
      const what = `${verb} the ${kind} ${printable(name)}`
      if (stops.length === 0) return what
      const policies = `${stops.length} ${stops.length === 1 ? 'policy' : 'policies'}`
      return `${what}; ${policies} would issue no tokens: ${few(stops.map(printable), 10)}`
    })
    .join('\n')
}

async function isConfirmed(): Promise<boolean> {
  const asking = createInterface({ input: process.stdin, output: process.stdout })
  // The end of the input closes it without an answer.
  const ended = new Promise<string>((resolve) => asking.once('close', () => resolve('')))
  const answer = await Promise.race([asking.question('Delete? [y/N] '), ended])
  asking.close()
  return /^y(es)?$/i.test(answer.trim())
}
