// Holds the service against its OpenAPI document with schemathesis (Python, not among our dependencies): thousands of requests that fit the
// document or just do not, once for each kind of credential. Run it with `bun test/clients/schemathesis.ts [FOLDER]`, after
// `pip install schemathesis==4.32.5`; SCHEMATHESIS names the program where it is not on the PATH, and FOLDER keeps the full reports.
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Federation, listenLocally, type Row, startFederation, temporaryFolder } from '../support/latchkey.ts'

type Failure = { code: string; title: string; count: number; operations: string[] }
type Report = { failures: Failure[]; errors: object[]; test_cases: { generated: number; failed: number } }

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

/** Runs all phases of schemathesis as one caller, against a server of its own. */
async function run(caller: keyof typeof credentials, folder: string): Promise<Report> {
  const federation = await startFederation()
  const { baseUrl } = federation.server
  let credential = await credentials[caller](federation)
  const isValid = async () =>
    (await fetch(`${baseUrl}/key`, { headers: { authorization: `Bearer ${credential}` } })).status === 200
  const issuer = await listenLocally(async () => {
    if (!(await isValid())) credential = await credentials[caller](federation)
    return new Response(credential)
  })
  mkdirSync(folder, { recursive: true })
  const child = Bun.spawn([program, 'run', `${baseUrl}/openapi.json`, ...options], {
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
  await issuer.listener.drain()
  await federation.stop()
  return (await Bun.file(join(folder, 'report.json')).json()) as Report
}

const options = [
  '--generation-deterministic',
  '--continue-on-failure',
  '--no-color',
  '--suppress-health-check=all',
  '--report=json,ndjson',
  '--report-json-path=report.json',
  '--report-ndjson-path=cases.ndjson',
]
const program = process.env.SCHEMATHESIS ?? Bun.which('schemathesis') ?? ''
if (!existsSync(program)) {
  console.error('schemathesis is not on the PATH; run: pip install schemathesis==4.32.5, or set SCHEMATHESIS')
  process.exit(2)
}
const temporary = temporaryFolder()
const folder = process.argv[2] ?? temporary.path
let isClean = true
for (const [index, caller] of (Object.keys(credentials) as (keyof typeof credentials)[]).entries()) {
  const { failures, errors, test_cases } = await run(caller, join(folder, String(index + 1)))
  console.log(`${caller}: ${test_cases.generated} cases, ${errors.length} errors`)
  for (const { code, title, operations } of failures) console.log(`  ${code} ${title}: ${operations.join(', ')}`)
  isClean &&= errors.length === 0 && failures.every(({ code }) => code === 'ST202')
}
temporary.remove()
process.exit(isClean ? 0 : 1)
