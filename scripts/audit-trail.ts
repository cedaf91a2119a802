// `latchkey audit trail`: everything of one subject, from its tokens to their cost, as a folder for an auditor.
import type { Command } from 'commander'
import type { Totals, TrailCheck } from '../src/audit-log/trail.ts'
import { writeTrail } from '../src/audit-log/trail-folder.ts'
import { parseRequest, type TrailHead } from '../src/audit-log/trail-format.ts'
import { parseVerifierKey } from '../src/audit-log/transparency/note.ts'
import { Fault } from '../src/fault.ts'
import { nanodollarsPerDollar } from '../src/limits.ts'
import { callOperation } from './shared/call-operation.ts'
import { command, dependencies, givenTo, print, readConfig, withSettings } from './shared/command-line.ts'
import { momentText } from './shared/option-values.ts'
import { createProgress } from './shared/progress.ts'
import { counted, dollars, few, printable } from './shared/render.ts'

export function trailCommand(): Command {
  const made = command(
    'trail <folder>',
    'Write all exchanges and requests of one subject, with proofs, into a folder',
    [
      'audit trail ./trail --subject repo:acme/app --issuer github',
      'audit trail ./trail --subject repo:acme/app --issuer github --since 30d',
      'audit verify ./trail --verifier-key log.vkey',
    ],
  )
    .requiredOption('--subject <subject>', 'only rows of this subject, the `sub` of its tokens')
    .requiredOption('--issuer <issuer>', 'the issuer, by name or id; a deleted one by id')
    .option(
      '--since <time>',
      'only since this time, such as 2026-11-21T09:30:00Z or 30d for the last 30 days',
      momentText,
    )
    .option('--until <time>', 'only before this time, such as 2026-11-22', momentText)
    .option('--organization <organization>', 'organization, by name or id (default: the only one, or default)')
    .addHelpText(
      'after',
      `
An auditor opens index.html in the folder with a browser, and checks the folder with \`audit verify\` and the verifier key alone. Requests of today
are in it, but nothing proves them until their day has ended (UTC).`,
    )
  return withSettings(made, { shown: ['LATCHKEY_DATABASE_URL'] }).action(async (...all: unknown[]) => {
    const { words, options } = givenTo(all)
    const [folder = ''] = words
    const config = readConfig(options)
    const { onProgress, end } = createProgress(process.stderr, dependencies.monotonic)
    const { subject = '', issuer = '', since, until, organization } = options as Record<string, string | undefined>
    const input = { subject, issuer, since, until, organization }
    const found = await callOperation(config, dependencies, 'audit.trail', input, { onProgress }).finally(end)
    const { keys } = await callOperation(config, dependencies, 'audit.log', {}, {})
    const verifiers = keys.flatMap(({ verifier_key }) => parseVerifierKey(verifier_key) ?? [])
    const textsOf = (kind: (typeof found.data)[number]['kind']) =>
      found.data.filter((item) => item.kind === kind).map(({ text }) => text)
    const trail = {
      head: found.head,
      ...{ exchanges: textsOf('exchange'), changes: textsOf('change'), days: textsOf('usage_day') },
      ...{ erasures: textsOf('erasure'), requests: textsOf('request').map(parseRequest) },
    }
    const check = await writeTrail(folder, trail, verifiers).catch((error: Error) => {
      throw new Fault('usage', `${JSON.stringify(folder)} cannot take the trail: ${error.message}`)
    })
    const { archives } = found
    const response = { folder, ...trailResponse(found.head, check), archives }
    print(
      options.json === true
        ? JSON.stringify(response, null, 2)
        : `${drawTrail(found.head, check)}${drawArchives(archives)}`,
    )
  })
}

function drawArchives(archives: readonly string[]): string {
  if (archives.length === 0) return ''
  return `\n  Rows of this time are also in archives, and not in the trail: ${few(archives.map(printable), 3)}`
}

/** What the check of a trail says, as JSON. */
export function trailResponse(head: TrailHead, check: TrailCheck) {
  const { problems, exchanges, requests, changes, proven, open, keyDays, size, witnesses } = check
  return {
    ok: problems.length === 0,
    problems,
    ...head,
    size,
    witnesses,
    exchanges: exchanges.length,
    requests: requests.length,
    requests_proven: proven.requests,
    requests_of_open_days: open.requests,
    tokens_of_open_days: open.tokens,
    usd_of_open_days: open.nanodollars / nanodollarsPerDollar,
    requests_of_other_exchanges: requests.filter(({ isOfExchange }) => !isOfExchange).length,
    tokens: proven.tokens,
    usd: proven.nanodollars / nanodollarsPerDollar,
    changes: changes.length,
    days: keyDays.map(({ day, key_id, shown, all }) => ({ day, key_id, requests: shown, requests_of_key: all })),
  }
}

export function drawTrail(head: TrailHead, check: TrailCheck): string {
  const { problems, exchanges, requests, proven, open, changes, keyDays, witnesses } = check
  const others = requests.filter(({ isOfExchange }) => !isOfExchange).length
  const missing = keyDays.filter(({ shown, all }) => shown < all).length
  const isRight = problems.length === 0
  const isEmpty = isRight && exchanges.length + requests.length === 0
  return [
    `${isRight ? '✓' : '✗'} ${printable(head.subject)} of ${printable(head.issuer_url)} in ${printable(head.origin)}`,
    // What could not be checked has no numbers.
    ...(isRight
      ? [
          `  ${counted(exchanges.length, 'exchange')}, ${totalsOf(proven)}; ${counted(changes.length, 'change')} explain them`,
        ]
      : []),
    ...(isEmpty
      ? ['  Nothing of this subject is in the trail: compare --subject, --issuer and the times with `latchkey audit`']
      : []),
    ...(open.requests > 0
      ? [`  Not proven: ${totalsOf(open)}, of days whose totals the log does not have yet. Do not rely on them`]
      : []),
    ...(others > 0 ? [`  ${counted(others, 'request')} used access tokens whose exchanges are not in this trail`] : []),
    ...(missing > 0
      ? [
          `  On ${counted(missing, 'day')} a key made more requests than this trail has: those of other subjects, or ones left out`,
        ]
      : []),
    ...(isRight
      ? witnesses.map(({ name, at }) => `✓ Cosigned by ${printable(name)} at ${new Date(at).toISOString()}`)
      : []),
    ...problems.map((problem) => `  ✗ ${printable(problem)}`),
  ].join('\n')
}

function totalsOf({ requests, tokens, nanodollars }: Totals): string {
  const usd = dollars(nanodollars / nanodollarsPerDollar)
  return `${counted(requests, 'request')}, ${counted(tokens, 'token')}, ${usd} USD`
}
