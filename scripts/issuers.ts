// `latchkey issuers`: the identity providers that an organization trusts.
import { X509Certificate } from 'node:crypto'
import type { Command } from 'commander'
import { issuerFields } from '../src/admin/kinds/issuer.ts'
import type { OperationResponse } from '../src/admin/operations.ts'
import { keysExpireWarningDays } from '../src/federation/issuer/key-expiry.ts'
import { splitBundle, validityOf } from '../src/values/certificates.ts'
import { importKeysCommand } from './issuers-import.ts'
import { type Arguments, command, group, isNarrowed, nothingMatches, runAlone } from './shared/command-line.ts'
import { fieldInput, fieldLines, fieldOptions } from './shared/field-options.ts'
import { readJsonFile, readTextFile } from './shared/input-files.ts'
import { pagedList, pageFilters } from './shared/list-pages.ts'
import { commandOnOne, inOrganization, operationCommand } from './shared/operation-command.ts'
import { few, lastUse, managedBy, moment, printable, record, withAffected } from './shared/render.ts'
import { table } from './shared/table.ts'
import type { Tone } from './shared/terminal.ts'

type Issuer = OperationResponse<'issuers.show'>

const sources: Record<Issuer['key_source'], string> = {
  discovery: 'discovery',
  jwks_url: 'JWKS URL',
  jwks: 'pasted JWKS',
}

const show = (issuer: Issuer) =>
  record({
    ...fieldLines(issuerFields, issuer, {
      key_source: sourceOf(issuer),
      keys_fetched_at: moment(issuer.keys_fetched_at),
      keys_usable_until: issuer.keys_usable_until === null ? null : moment(issuer.keys_usable_until),
      keys_failing_since: issuer.keys_failing_since === null ? null : moment(issuer.keys_failing_since),
      keys: describeKeys(issuer),
      keys_expire_at: issuer.key_source === 'jwks' ? describeExpiry(issuer) : null,
      keys_stale_seconds: issuer.key_source === 'jwks' ? 'never' : `${issuer.keys_stale_seconds} s without renewal`,
      ca_expires_at: issuer.ca_pem === null ? 'none' : few(certificatesOf(issuer.ca_pem), 3),
      shared: issuer.shared === null ? null : issuer.shared ? 'yes' : 'no',
    }),
    ...managedBy(issuer),
    ...lastUse(issuer),
  })

function sourceOf({ jwks_url, key_source, key_bundle, bundle_signer }: Issuer): string {
  if (bundle_signer !== null) return `signed bundles of ${bundle_signer} only`
  return key_bundle === null ? (jwks_url ?? sources[key_source]) : `a signed bundle of ${key_bundle.bundle_signer}`
}

const dayMilliseconds = 24 * 60 * 60 * 1_000

const daysUntil = (at: string) => (Date.parse(at) - Date.now()) / dayMilliseconds

/** From two weeks before, the rest is shown too. */
function describeExpiry({ keys_expire_at: at }: Pick<Issuer, 'keys_expire_at'>): string {
  if (at === null) return 'never'
  const days = daysUntil(at)
  if (days > Math.max(...keysExpireWarningDays)) return moment(at)
  if (days <= 0) return `${moment(at)} (expired)`
  return `${moment(at)} (in ${days < 1 ? 'less than a day' : `${Math.floor(days)} days`})`
}

function expiryTone(_: string, { keys_expire_at: at }: Pick<Issuer, 'keys_expire_at'>): Tone | undefined {
  if (at === null || daysUntil(at) > Math.max(...keysExpireWarningDays)) return undefined
  return daysUntil(at) < 1 ? 'red' : 'yellow'
}

function describeKeys({ keys }: Issuer): string {
  const shown = keys.map(({ kid, algorithm }) => `${kid ?? '(no kid)'} ${algorithm}`)
  return shown.length === 0 ? 'none yet' : few(shown, 10)
}

/** Each certificate by its subject and the beginning of its SHA-256 fingerprint, as other tools print them. */
function certificatesOf(pem: string): string[] {
  return splitBundle(pem).map((block) => {
    const certificate = new X509Certificate(block)
    const { subject, fingerprint256 } = certificate
    const until = new Date(validityOf(certificate).expiresAt).toISOString().slice(0, 10)
    return `${subject.replaceAll('\n', ' ')} (until ${until}, SHA-256 ${fingerprint256.slice(0, 23)}…)`
  })
}

export function issuersCommand(): Command {
  return group('issuers', 'Identity providers that an organization trusts', [
    addCommand(),
    listCommand(),
    commandOnOne('issuer', 'show', 'Show an issuer', 'issuers.show', show),
    updateCommand(),
    verifyCommand(),
    importKeysCommand(),
    commandOnOne('issuer', 'refresh', "Fetch an issuer's keys now", 'issuers.refresh', show),
    commandOnOne(
      'issuer',
      'delete',
      'Stop trusting an issuer; new exchanges stop immediately',
      'issuers.delete',
      (issuer) => withAffected(`Deleted ${issuer.id}`, issuer),
    ),
  ])
}

function addCommand(): Command {
  const made = command('add', 'Trust an identity provider', [
    'issuers add --name github --issuer-url https://token.actions.githubusercontent.com',
    'issuers add --name cluster --issuer-url https://kubernetes.default.svc --jwks-file jwks.json',
    'issuers add --name idp --issuer-url https://idp.example.com --jwks-url https://idp.example.com/keys',
  ])
  return operationCommand(
    inOrganization(fieldOptions(made, issuerFields, 'create')),
    'issuers.add',
    issuerInput,
    (issuer) => [show(issuer), '', nextStep(issuer), 'Next: latchkey policies create --help'].join('\n'),
  )
}

function listCommand(): Command {
  return pagedList(
    command('list', 'List the issuers', ['issuers list', 'issuers list --contains cluster --limit 20']),
    'issuers.list',
    () => ({}),
    (rows, { options }) =>
      table(
        rows,
        [
          ['NAME', (row) => row.name],
          ['ISSUER URL', (row) => row.issuer_url],
          ['KEYS FROM', (row) => (row.key_bundle === null ? sources[row.key_source] : 'signed bundle')],
          ['KEYS FETCHED (UTC)', (row) => moment(row.keys_fetched_at)],
          ['KEYS EXPIRE (UTC)', (row) => (row.keys_expire_at === null ? null : describeExpiry(row)), expiryTone],
          ['LAST USED (UTC)', ({ last_used_at = null }) => moment(last_used_at)],
          ['MANAGED BY', (row) => row.managed_by],
          ['ID', (row) => row.id],
        ],
        isNarrowed(options, pageFilters)
          ? nothingMatches
          : 'No issuers. To add one: latchkey issuers add --name my-idp --issuer-url https://idp.example.com',
      ),
  )
}

function updateCommand(): Command {
  const made = command('update <issuer>', 'Change an issuer; takes effect immediately', [
    'issuers update cluster --jwks-file new-jwks.json',
    'issuers update idp --discovery',
  ])
  return operationCommand(
    inOrganization(fieldOptions(made, issuerFields, 'change')),
    'issuers.update',
    (given) => ({ issuer: given.words[0], ...issuerInput(given) }),
    show,
  )
}

function verifyCommand(): Command {
  const made = command(
    'verify [issuer]',
    'Test an issuer, saved or not: discovery, keys, certificates, clock; saves nothing',
    ['issuers verify idp', 'issuers verify --issuer-url https://idp.example.com --ca-file corporate-ca.pem'],
  )
    .option('--issuer-url <url>', 'issuer URL of an issuer that is not saved')
    .option('--jwks-url <url>', 'fetch the keys from this URL instead of by discovery')
    .option('--jwks-file <file>', 'test the keys of this JWKS file')
    .option('--ca-file <file>', 'certificates (PEM) to trust when fetching')
  return operationCommand(
    inOrganization(made),
    'issuers.verify',
    ({ words, options }) => ({
      organization: options.organization,
      issuer: words[0],
      issuer_url: options.issuerUrl,
      jwks_url: options.jwksUrl,
      jwks: typeof options.jwksFile === 'string' ? readJsonFile(options.jwksFile) : undefined,
      ca_pem: caFileText(options.caFile),
    }),
    drawVerification,
    { moreShown: ['LATCHKEY_INSECURE_ISSUERS'], isNegative: ({ ok }) => !ok },
  )
}

function drawVerification({ issuer_url, checks, keys }: OperationResponse<'issuers.verify'>): string {
  const lines = checks.map(({ step, ok, detail }) => `  ${ok ? '✓' : '✗'} ${step.padEnd(10)} ${printable(detail)}`)
  const found = keys.map(({ kid, algorithm }) => `      ${algorithm}  ${printable(kid)}`)
  return [printable(issuer_url), ...lines, ...found].join('\n')
}

function nextStep({ name, key_source }: Issuer): string {
  return key_source === 'jwks'
    ? 'The keys are in place.'
    : `The keys are fetched at the first exchange. To fetch them now: latchkey issuers refresh ${name}`
}

function issuerInput({ options }: Arguments): Record<string, unknown> {
  return { organization: options.organization, ...fieldInput(issuerFields, options) }
}

function caFileText(path: string | boolean | undefined): string | undefined {
  return typeof path === 'string' ? readTextFile(path) : undefined
}

if (import.meta.main) await runAlone(issuersCommand())
