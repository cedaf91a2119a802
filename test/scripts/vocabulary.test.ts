// One vocabulary: an option has one kind of value and one meaning in all commands, one word ends an object and one stops it,
// and the former names still work.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Command, InvalidArgumentError, type Option } from 'commander'
import { loadProgram } from '../../scripts/latchkey.ts'
import { flagOf, settings } from '../../src/settings/settings.ts'
import { runCommand, temporaryFolder } from '../support/latchkey.ts'
import { rowsOf, sectionOf } from '../support/manual.ts'

type Use = { path: string; group: string; option: Option; value: string }

const program = await loadProgram([])
const commands = leavesOf(program)

function leavesOf(made: Command, path: readonly string[] = []): { path: string; made: Command }[] {
  const below = made.commands.flatMap((child) => leavesOf(child, [...path, child.name()]))
  return path.length === 0 ? below : [{ path: path.join(' '), made }, ...below]
}

const settingFlags = new Set<string>(settings.map(({ env }) => `--${flagOf(env)}`))
const uses = commands.flatMap(({ path, made }) =>
  made.options
    .filter(({ hidden, long }) => !hidden && long !== undefined && !settingFlags.has(long) && long !== '--config')
    .map((option): Use => ({ path, group: path.split(' ')[0] ?? '', option, value: kindOfValue(option) })),
)

/** Without the dots of several values. */
function kindOfValue({ flags }: Option): string {
  const value = /[<[](.+)[>\]]$/.exec(flags)?.[1]?.replace('...', '') ?? 'switch'
  return /^(?:file|folder|file\|folder)$/.test(value) ? 'path' : value
}

/** What the help of an option says in every command that has it. Without an entry, an option is in one group of commands. */
const meanings: Readonly<Record<string, [value: string, says: RegExp]>> = {
  '--all': ['switch', /^everything|all policies/],
  '--allowed-models': ['pattern', /^models that/],
  '--allowed-presets': ['pattern', /^presets that/],
  '--audience': ['audience', /audience of the JWT|aud claim/],
  '--because': ['reason', /^why/],
  '--before-id': ['id', /before this id, for the next page/],
  '--ca-file': ['path', /^certificates \(PEM\) to trust/],
  '--concurrent-requests': ['number', /run at once; more wait for their turn/],
  '--contains': ['text', /names that contain this text/],
  '--description': ['text', /^(?:new description|what the policy is for)$/],
  '--dry-run': ['switch', /without (?:saving|changing)|save nothing|delete nothing/],
  '--force': ['switch', /configuration document locks/],
  '--identity': ['identity', /where the JWT is/],
  '--insecure-http': ['switch', /allow an http:\/\/ URL/],
  '--issuer': ['issuer', /issuer.*, by name or id/],
  '--issuer-url': ['url', /issuer URL/],
  '--json': ['switch', /^print JSON/],
  '--jwks-url': ['url', /^fetch the keys/],
  '--key': ['key', /key.*, by name, id or hash/],
  '--key-file': ['path', /management key/],
  '--grace': ['duration', /up to 30d \(default: 24h\)/],
  '--limit': ['rows', /^maximum number of/],
  '--name': ['name', /^(?:new name|name of the)/],
  '--never-used': ['switch', /have never worked/],
  '--organization': ['organization', /organization, by name or id/],
  '--owner': ['user', /user/],
  '--policy': ['policy', /policy/],
  '--since': ['time', /since this time/],
  '--state': ['state', /in this state/],
  '--status': ['switch', /^show /],
  '--subject': ['subject', /this subject|sub claim/],
  '--to': ['path', /folder/],
  '--until': ['time', /^only before this time/],
  '--unused': ['time', /have not worked since/],
  '--url': ['url', /base URL of (?:a|the) server/],
  '--workspace': ['workspace', /^workspace, by name or id/],
  '--yes': ['switch', /do not ask/],
}

/** Workloads have no database to look up a name in. */
const kindOf = ({ option: { long }, value, group }: Use) =>
  long === '--policy' && value === 'id' && ['token', 'exec', 'agent'].includes(group) ? 'policy' : value

describe('an option', () => {
  const names = [...new Set(uses.map(({ option }) => option.long ?? ''))]

  test('has one kind of value in all commands', () => {
    const kinds = names.map((name) => [name, ...new Set(uses.filter(({ option }) => option.long === name).map(kindOf))])
    expect(kinds.filter(({ length }) => length > 2)).toEqual([])
  })

  test('that several groups of commands share has one meaning, which the manual names', () => {
    const positive = (name: string) => !name.startsWith('--no-')
    const groupsOf = (name: string) => new Set(uses.flatMap((use) => (use.option.long === name ? [use.group] : [])))
    const shared = names.filter((name) => positive(name) && groupsOf(name).size > 1)
    expect(shared.toSorted()).toEqual(Object.keys(meanings).toSorted())
    const section = sectionOf('configuration', 'Words of the command').split('These former names', 1)[0] ?? ''
    const listed = rowsOf(section).flatMap(([cell = '']) => [...cell.matchAll(/`(--[\w-]+)/g)].map(([, name]) => name))
    expect([...new Set(listed)].toSorted()).toEqual(shared.toSorted())
  })

  for (const [name, [value, says]] of Object.entries(meanings))
    test(`${name} means one thing`, () => {
      for (const use of uses.filter(({ option }) => option.long === name))
        expect([use.path, kindOf(use), use.option.description]).toEqual([use.path, value, expect.stringMatching(says)])
    })

  test('takes a duration wherever it takes a time span, and no bare unit', () => {
    expect(uses.filter(({ value }) => /^(?:seconds|minutes|hours|days|dir|exchanges)$/.test(value))).toEqual([])
    const durations = uses.filter(({ value }) => value === 'duration')
    expect(durations.length).toBeGreaterThan(10)
    for (const { option } of durations) {
      for (const text of ['90s', '15m', '24h', '7d'])
        expect(option.parseArg?.(text, undefined), option.flags).toBeDefined()
      expect(() => option.parseArg?.('soon', undefined), option.flags).toThrow(InvalidArgumentError)
    }
  })
})

describe('a command', () => {
  test('that ends an object is delete, and one that stops it is disable', () => {
    const words = commands.map(({ path }) => path)
    expect(words.filter((path) => /^(?!admin ).* (?:remove|pause|resume|stop|end)$/.test(path))).toEqual([])
    expect(words).toContain('upstreams delete')
    expect(words).toContain('policies disable')
  })
})

describe('a former name', () => {
  const folder = temporaryFolder()
  const run = (...args: string[]) => runCommand(args, { cwd: folder.path })
  const warning = (former: string, current: string) =>
    `Warning: ${former} is now ${current}; the next release no longer accepts ${former}\n`
  beforeAll(async () => {
    expect((await run('init')).code).toBe(0)
  })
  afterAll(() => folder.remove())

  test('of an option works, warns on standard error alone, and can be removed again', async () => {
    const made = await run('keys', 'create', '--name', 'ci', '--limit', '5', '--limit-reset', 'daily', '--json')
    expect([made.code, JSON.parse(made.stdout)]).toMatchObject([0, { limit: 5, limit_reset: 'daily' }])
    expect(made.stderr).toBe(warning('--limit', '--budget') + warning('--limit-reset', '--budget-reset'))
    const freed = await run('keys', 'update', 'ci', '--no-limit', '--no-limit-reset', '--json')
    expect(JSON.parse(freed.stdout)).toMatchObject({ limit: null, limit_reset: null })
    expect(freed.stderr).toBe(warning('--no-limit', '--no-budget') + warning('--no-limit-reset', '--no-budget-reset'))
  })

  test('of a required option counts as given, and both names are one too many', async () => {
    const issuer = ['--name', 'idp', '--url', 'https://idp.example.com']
    expect(await run('issuers', 'add', ...issuer)).toMatchObject({ code: 0, stderr: warning('--url', '--issuer-url') })
    const both = await run(
      'issuers',
      'update',
      'idp',
      '--url',
      'https://a.example',
      '--issuer-url',
      'https://b.example',
    )
    expect(both).toMatchObject({ code: 2, stderr: expect.stringContaining('give one of them') })
  })

  test('of a command works and warns', async () => {
    await run('prices', 'set', 'tiny', '--prompt', '1', '--completion', '1')
    const removed = await run('prices', 'remove', 'tiny', '--json')
    expect(removed).toMatchObject({ code: 0, stderr: warning('prices remove', 'prices delete') })
    expect(await run('prices', 'delete', 'tiny')).toMatchObject({
      code: 1,
      stderr: expect.not.stringContaining('Warning'),
    })
  })

  test('is in no help and no completion', async () => {
    const help = (await run('keys', 'create', '--help')).stdout
    expect(help).toContain('--budget <dollars>')
    expect(help).not.toContain('--limit')
    expect((await run('upstreams', '--help')).stdout).not.toContain('remove')
    expect((await run('__complete', 'policies', 'p')).stdout).not.toContain('pause')
    expect((await run('man')).stdout).not.toContain('upstreams remove')
  })
})
