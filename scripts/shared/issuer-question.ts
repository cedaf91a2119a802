// The question that the linter leaves to people: whether strangers can get tokens of an issuer. At a terminal, a command that needs the
// answer asks, and stores it.
import { createInterface } from 'node:readline/promises'
import { Fault } from '../../src/fault.ts'
import { type CommandInput, callOperation } from './call-operation.ts'
import { type Arguments, dependencies, print, readConfig } from './command-line.ts'
import { printable } from './render.ts'

/**
 * Asks if a policy was refused for want of the answer, and reports whether it was stored. A dry run, and a command without a terminal, does
 * not ask.
 * @throws Fault if the answer cannot be stored
 */
export async function answerIssuerQuestion(refusal: unknown, given: Arguments): Promise<boolean> {
  if (!(refusal instanceof Fault) || refusal.reason !== 'shared_unknown') return false
  const { json, dryRun, force, organization } = given.options
  if (json === true || dryRun === true || !process.stdin.isTTY || !process.stdout.isTTY) return false
  const config = readConfig(given.options)
  const within = organization === undefined ? {} : { organization }
  const issuer = given.options.issuer ?? (await issuerOfPolicy(given, within))
  const { id, name, issuer_url } = await callOperation(config, dependencies, 'issuers.show', { issuer, ...within })
  print(
    [
      `Can strangers get tokens of the issuer ${printable(name)} (${printable(issuer_url)})?`,
      '  no   only people and workloads of your organization can',
      '  yes  others can too: everyone who signs up there, or other customers',
    ].join('\n'),
  )
  const shared = await askYesOrNo()
  if (shared === undefined) return false
  const answer = { issuer: id, shared, ...within }
  await callOperation(config, dependencies, 'issuers.update', answer, { force: force === true })
  return true
}

async function issuerOfPolicy({ words, options }: Arguments, within: CommandInput<'policies.show'>): Promise<string> {
  const input = { policy: words[0], ...within }
  return (await callOperation(readConfig(options), dependencies, 'policies.show', input)).issuer_id
}

/** Undefined for everything else, so that nobody answers by pressing Enter. */
async function askYesOrNo(): Promise<boolean | undefined> {
  const asking = createInterface({ input: process.stdin, output: process.stdout })
  // The end of the input closes it without an answer.
  const ended = new Promise<string>((resolve) => asking.once('close', () => resolve('')))
  const answer = (await Promise.race([asking.question('Type yes or no: '), ended])).trim().toLowerCase()
  asking.close()
  return answer === 'yes' ? true : answer === 'no' ? false : undefined
}
