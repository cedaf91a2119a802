// Holds the service against its OpenAPI document with schemathesis (Python, not among our dependencies): thousands of requests that fit the
// document or just do not, once for each kind of credential. Run it with `bun test/clients/schemathesis.ts [FOLDER]`, after
// `pip install schemathesis==4.32.5`; SCHEMATHESIS names the program where it is not on the PATH, and FOLDER keeps the full reports.
// It succeeds when nothing is reported but requests that fit the schema and are refused (ST202). Which those are, and with which message, it
// prints: each must be a rule that a description in the document states.
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Federation, listenLocally, type Row, startFederation, temporaryFolder } from '../support/latchkey.ts'

type Failure = { code: string; title: string; operations: string[] }
type Report = { failures: Failure[]; errors: object[]; test_cases: { generated: number } }
type Recorder = {
  cases: Record<string, { value: { method: string; path: string } }>
  checks?: Record<string, { name: string; status: string }[]>
  interactions: Record<string, { response?: { status_code: number; content?: { $base64: string } } }>
}

const credentials = {
  'a read-write management key': (federation: Federation) => createKey(federation, 'management'),
  'an inference key': (federation: Federation) => createKey(federation, 'inference'),
  'an access token': exchange,
  'a read-only management key': (federation: Federation) => createKey(federation, 'management_read_only'),
}

async function createKey({ admin }: Federation, kind: string): Promise<string> {
  return (await admin<Row & { key: string }>('keys.create', { name: `for ${kind} ${crypto.randomUUID()}`, kind })).key
}

async function exchange(federation: Federation): Promise<string> {
  const response = await federation.exchange(await federation.mint())
  return ((await response.json()) as { access_token: string }).access_token
}

/** Runs all phases of schemathesis as one caller, against its own server. */
async function run(caller: keyof typeof credentials, folder: string): Promise<Report> {
  // It takes whatever gets through, so that every refusal is our own.
  const upstream = await listenLocally(async () => Response.json({ object: 'list', data: [] }))
  const federation = await startFederation({ upstreamUrl: upstream.url })
  const { baseUrl } = federation.server
  let credential = await credentials[caller](federation)
  const isValid = async () =>
    (await fetch(`${baseUrl}/key`, { headers: { authorization: `Bearer ${credential}` } })).status === 200
  const issuer = await listenLocally(async () => {
    if (!(await isValid())) credential = await credentials[caller](federation)
    return new Response(credential)
  })
  mkdirSync(folder, { recursive: true })
  const child = Bun.spawn([program, '--config-file', settings, 'run', `${baseUrl}/openapi.json`, ...options], {
    cwd: folder,
    env: {
      ...process.env,
      PYTHONPATH: import.meta.dirname,
      SCHEMATHESIS_HOOKS: 'schemathesis_hooks',
      LATCHKEY_TEST_CREDENTIAL_URL: issuer.url,
    },
    stdout: Bun.file(join(folder, 'output.txt')),
    stderr: 'inherit',
  })
  await child.exited
  await Promise.all([issuer.listener.drain(), upstream.listener.drain()])
  await federation.stop()
  return (await Bun.file(join(folder, 'report.json')).json()) as Report
}

/** Every request that fits the schema and was refused: how often, where, and with which message, values left out. */
async function listRefused(folder: string): Promise<string[]> {
  const counts = new Map<string, number>()
  for (const line of (await Bun.file(join(folder, 'cases.ndjson')).text()).split('\n')) {
    if (!line.includes('ScenarioFinished')) continue
    const { recorder } = (JSON.parse(line) as { ScenarioFinished: { recorder: Recorder } }).ScenarioFinished
    for (const [id, checks] of Object.entries(recorder.checks ?? {})) {
      if (!checks.some(({ name, status }) => name === 'positive_data_acceptance' && status !== 'success')) continue
      const { method, path } = recorder.cases[id]?.value ?? { method: '?', path: '?' }
      const body = Buffer.from(recorder.interactions[id]?.response?.content?.$base64 ?? '', 'base64').toString()
      const refused = `${method} ${path}: ${messageIn(body)}`
      counts.set(refused, (counts.get(refused) ?? 0) + 1)
    }
  }
  return [...counts].toSorted().map(([refused, count]) => `${refused} (${count})`)
}

function messageIn(body: string): string {
  const found = JSON.parse(body) as { error_description?: string; error?: { message?: string } }
  const [message = ''] = (found.error_description ?? found.error?.message ?? body).split('\n')
  return message
    .replaceAll(/"(?:[^"\\]|\\.)*"/g, '"…"')
    .replaceAll(/\(was .*\)/g, '')
    .replaceAll(/\d{3,}/g, '…')
    .slice(0, 160)
}

const options = [
  '--generation-deterministic',
  '--continue-on-failure',
  '--no-color',
  '--suppress-health-check=all',
  '--report=json,ndjson',
  // They lie beside the base URL, and it sends everything below that.
  '--exclude-path=/livez',
  '--exclude-path=/readyz',
  '--report-json-path=report.json',
  '--report-ndjson-path=cases.ndjson',
]
const settings = join(import.meta.dirname, 'schemathesis.toml')
const program = process.env.SCHEMATHESIS ?? Bun.which('schemathesis') ?? ''
if (!existsSync(program)) {
  console.error('schemathesis is not on the PATH; run: pip install schemathesis==4.32.5, or set SCHEMATHESIS')
  process.exit(2)
}
const temporary = temporaryFolder()
const kept = process.argv[2] ?? temporary.path
let isClean = true
for (const [index, caller] of (Object.keys(credentials) as (keyof typeof credentials)[]).entries()) {
  const folder = join(kept, String(index + 1))
  const { failures, errors, test_cases } = await run(caller, folder)
  console.log(`${caller}: ${test_cases.generated} cases, ${errors.length} errors`)
  for (const { code, title, operations } of failures) console.log(`  ${code} ${title}: ${operations.join(', ')}`)
  for (const refused of await listRefused(folder)) console.log(`    ${refused}`)
  isClean &&= errors.length === 0 && failures.every(({ code }) => code === 'ST202')
}
temporary.remove()
process.exit(isClean ? 0 : 1)
