// What init says to do next works when it is pasted: on the database that init made, wherever that is.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { compiledProgram } from '../support/compiled-program.ts'
import { temporaryFolder } from '../support/latchkey.ts'

let folder: ReturnType<typeof temporaryFolder>
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(() => folder.remove())

async function shell(line: string) {
  const script = `latchkey() { ${compiledProgram()
    .map((part) => `'${part}'`)
    .join(' ')} "$@"; }\n${line}`
  const child = Bun.spawn(['sh', '-c', script], { cwd: folder.path, env: {}, stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { code: await child.exited, stdout, stderr }
}

const nextLines = (stdout: string) => (stdout.split('Next:\n')[1] ?? '').trimEnd().split('\n')

test('without options it names none', async () => {
  const { stdout } = await shell('latchkey init')
  expect(nextLines(stdout)[0]).toBe('  latchkey keys create --name my-app')
  expect(stdout).not.toContain('--config')
  expect(stdout).not.toContain('--database-url')
})

const given: [name: string, options: string, database: string][] = [
  ['a database', "--database-url 'file:a b/it'\\''s.db'", "a b/it's.db"],
  ['a settings file', '--config site.conf', 'site/latchkey.db'],
  [
    'both, and a file for the master key',
    '--config site.conf --database-url file:c.db --master-key-file m.key',
    'c.db',
  ],
]
for (const [name, options, database] of given) {
  test(`with ${name} its lines carry what was given, so that they meet the same database`, async () => {
    for (const sub of ['site', 'a b']) mkdirSync(join(folder.path, sub))
    writeFileSync(join(folder.path, 'site.conf'), 'LATCHKEY_DATABASE_URL=file:site/latchkey.db\n')
    const { stdout } = await shell(`latchkey init ${options}`)
    expect(existsSync(join(folder.path, database))).toBe(true)
    const [keys = '', issuers = '', policies = '', serve = ''] = nextLines(stdout)
    for (const line of [keys, issuers, policies]) expect(await shell(line)).toMatchObject({ code: 0, stderr: '' })
    expect(serve).toStartWith('  latchkey serve ')
    const { code, stderr } = await shell(`${serve} --base-url nonsense`)
    expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining('LATCHKEY_BASE_URL') })
    expect(serve.includes('--master-key-file m.key')).toBe(options.includes('m.key'))
  })
}

test('an upstream in the settings file stays: the line that starts the server names none', async () => {
  writeFileSync(join(folder.path, 'site.conf'), 'LATCHKEY_UPSTREAM_URL=http://10.0.0.5:8000/v1\n')
  const { stdout } = await shell('latchkey init --config site.conf')
  expect(nextLines(stdout)[3]).toBe('  latchkey serve --config site.conf')
})

test('with --key-file the key is in a new file for its owner alone, and --if-missing leaves a database as it is', async () => {
  const first = await shell('latchkey init --if-missing --key-file keys/first')
  expect(first).toMatchObject({ code: 0, stderr: '' })
  const key = readFileSync(join(folder.path, 'keys/first'), 'utf8')
  expect(key).toMatch(/^sk-lk-v1-[0-9a-f]{64}\n$/)
  expect(first.stdout).not.toContain(key.trim())
  expect(statSync(join(folder.path, 'keys/first')).mode & 0o777).toBe(0o600)

  const second = await shell('latchkey init --if-missing --key-file keys/first')
  expect(second).toMatchObject({ code: 0, stdout: expect.stringContaining('is already initialized') })
  expect(readFileSync(join(folder.path, 'keys/first'), 'utf8')).toBe(key)
  expect(readdirSync(join(folder.path, 'keys'))).toEqual(['first'])
  expect(await shell('latchkey init --key-file keys/first')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('exists'),
  })
  expect(await shell('latchkey init')).toMatchObject({ code: 1 })
})
