// Plans and applies documents on a server elsewhere, over HTTP with a management key, such as from a CI job.
import type { Command } from 'commander'
import type { OperationResponse } from '../../src/admin/operations.ts'
import { describeError, Fault, type FaultCode } from '../../src/fault.ts'
import { forceHeader } from '../../src/http/force.ts'
import { outboundFetch } from '../../src/runtime/outbound.ts'
import { type CommandInput, callOperation } from './call-operation.ts'
import { dependencies, type Options, readConfig } from './command-line.ts'
import { readTextFile } from './input-files.ts'

type ConfigOperation = 'config.plan' | 'config.apply'

const paths = { 'config.plan': '/config/plan', 'config.apply': '/config/apply' } as const
const codes: Readonly<Record<number, FaultCode>> = {
  400: 'invalid',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  409: 'conflict',
  413: 'too_large',
}
const responseMillisecondsMax = 120_000

export function remoteOptions(made: Command): Command {
  return made
    .option('--url <url>', 'base URL of a server elsewhere, which ends in /v1, instead of the database here')
    .option('--key-file <file>', 'management key for --url; - for standard input')
}

/** Runs the operation here, or with `--url` over HTTP. @throws Fault of the operation */
export function askConfig<Name extends ConfigOperation>(
  name: Name,
  options: Options,
  input: CommandInput<Name>,
): Promise<OperationResponse<Name>> {
  const { url, keyFile } = options
  const force = options.force === true
  if (typeof url !== 'string' && keyFile === undefined)
    return callOperation(readConfig(options), dependencies, name, input, { force })
  if (typeof url !== 'string' || typeof keyFile !== 'string')
    throw new Fault('usage', '--url and --key-file go together: the key must be a management key of that server')
  const { organization, ...body } = input as { organization?: unknown }
  if (organization !== undefined)
    throw new Fault('usage', 'Remove --organization: over HTTP, the management key decides the organization')
  const headers = { authorization: `Bearer ${readTextFile(keyFile).trim()}`, [forceHeader]: String(force) }
  return post(toEndpoint(url, paths[name]), headers, body) as Promise<OperationResponse<Name>>
}

/** @throws Fault `usage` for a URL to which a key must not be sent */
function toEndpoint(url: string, path: string): string {
  const parsed = URL.parse(url)
  const isLoopback = ['127.0.0.1', 'localhost', '[::1]'].includes(parsed?.hostname ?? '')
  if (parsed?.protocol === 'https:' || (parsed?.protocol === 'http:' && isLoopback))
    return url.replace(/\/$/, '') + path
  throw new Fault('usage', `${JSON.stringify(url)} is not a valid value for --url: use an https:// URL`)
}

async function post(url: string, more: Record<string, string>, input: object): Promise<unknown> {
  const headers = { ...more, 'content-type': 'application/json' }
  const signal = AbortSignal.timeout(responseMillisecondsMax)
  const body = JSON.stringify(input)
  let status: number
  let answer: { data?: unknown; error?: { message?: unknown } }
  try {
    const response = await outboundFetch(url, { method: 'POST', headers, body, signal, redirect: 'manual' })
    status = response.status
    // A body that is JSON and no object, such as null, is no answer.
    answer = Object(await response.json()) as typeof answer
  } catch (error) {
    throw new Fault('unavailable', `${url} did not respond as a Latchkey does: ${describeError(error)}`)
  }
  if (status === 200 && answer.data !== undefined) return answer.data
  throw new Fault(codes[status] ?? 'unavailable', String(answer.error?.message ?? `${url} responded with ${status}`))
}
