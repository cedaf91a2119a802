// Completion in shells: what the program suggests, and that each shell passes it on.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { compiledProgram } from '../support/compiled-program.ts'
import { runCommand, type ServingProcess, startServing, temporaryFolder } from '../support/latchkey.ts'

const folder = temporaryFolder()
const bin = join(folder.path, 'bin')
let serving: ServingProcess | undefined

const run = (...args: string[]) => runCommand(args, { cwd: folder.path })
const suggested = async (...words: string[]) => {
  const { code, stdout, stderr } = await run('__complete', ...words)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const [kind, ...lines] = stdout.trimEnd().split('\n')
  return { kind, values: lines.map((line) => line.split('\t')[0]) }
}

beforeAll(async () => {
  mkdirSync(bin)
  const program = compiledProgram()
    .map((part) => `'${part}'`)
    .join(' ')
  writeFileSync(join(bin, 'latchkey'), `#!/bin/sh\nexec ${program} "$@"\n`, { mode: 0o755 })
  expect((await run('init')).code).toBe(0)
  serving = await startServing(['serve', '--listen', '127.0.0.1:0'], { cwd: folder.path })
  for (const name of ['app-one', 'app-two', 'batch']) expect((await run('keys', 'create', '--name', name)).code).toBe(0)
})

afterAll(async () => {
  await serving?.stop()
  folder.remove()
})

describe('the program suggests', () => {
  const cases: [words: string[], values: string[]][] = [
    [['k'], ['keys']],
    [
      ['keys', 'd'],
      ['delete', 'disable'],
    ],
    [
      ['usage', '--by', 'p'],
      ['policy', 'preset'],
    ],
    [['help', 'mon'], ['monitoring']],
    [
      ['config', 'export', '--only', 'p'],
      ['policies', 'presets', 'prices'],
    ],
    [['config', 'export', '--only', 'issuers', 'k'], ['keys']],
    [['config', 'export', '--only', 'issuers', 'keys', '--js'], ['--json']],
    [['presets', 'im'], []],
    [['presets', 'ex'], []],
    [
      ['keys', 'show', 'app'],
      ['app-one', 'app-two'],
    ],
    [['keys', 'disable', 'batch', 'app-o'], ['app-one']],
    [['policies', 'create', '--key', 'b'], ['batch']],
    [['--json', 'keys', 'show', 'b'], ['batch']],
    [['keys', 'show', 'batch', ''], []],
    [['serve', '--upstream-api-key', ''], []],
    [['nowhere', ''], []],
    [['workspaces', 'create', '--organization', 'd'], ['default']],
  ]
  for (const [words, values] of cases)
    test(`${values.join(', ') || 'nothing'} after latchkey ${words.join(' ')}`, async () => {
      const found = await suggested(...words)
      expect(found).toEqual({ kind: 'words', values: expect.arrayContaining(values) })
      expect(found.values).toHaveLength(values.length)
    })

  test('files where a file is meant', async () => {
    expect((await suggested('policies', 'check', '--token-file', '')).kind).toBe('files')
    expect((await suggested('prices', 'import', '')).kind).toBe('files')
  })

  test('options of the command, without hidden ones', async () => {
    const { values } = await suggested('keys', 'list', '--')
    expect(values).toContain('--owner')
    expect(values).not.toContain('--listen')
  })

  test('nothing, silently, where no server responds', async () => {
    expect(await suggested('keys', 'show', '--database-url', 'file:absent/latchkey.db', '')).toEqual({
      kind: 'words',
      values: [],
    })
    expect(await suggested('keys', 'show', '--config', 'absent.conf', '')).toEqual({ kind: 'words', values: [] })
  })
})

const script = async (shell: string) => {
  const { code, stdout } = await run('completion', shell)
  expect(code).toBe(0)
  const path = join(folder.path, `completion.${shell}`)
  writeFileSync(path, stdout)
  return path
}

function runShell(shell: string, ...args: string[]): string[] {
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}`, HOME: folder.path }
  const { stdout, stderr } = spawnSync(shell, args, { encoding: 'utf8', cwd: folder.path, env })
  expect(stderr).toBe('')
  return stdout.trimEnd().split('\n')
}

test('bash completes names and commands, quoted where needed', async () => {
  const path = await script('bash')
  const complete = (line: string) =>
    runShell(
      'bash',
      '-c',
      `. '${path}'; COMP_LINE='${line}' COMP_POINT=${line.length}; _latchkey; printf '%s\\n' "\${COMPREPLY[@]}"`,
    )
  expect(complete('latchkey keys show app')).toEqual(['app-one', 'app-two'])
  expect(complete('latchkey policies l')).toEqual(['list', 'lint'])
  expect(complete('latchkey keys disable ').toSorted()).toEqual([
    'app-one',
    'app-two',
    'batch',
    'first\\ management\\ key',
  ])
  expect(runShell('bash', '-c', `. '${path}'; complete -p latchkey`)).toEqual(['complete -F _latchkey latchkey'])
})

test.skipIf(Bun.which('zsh') === null)('zsh completes names with descriptions', async () => {
  const path = await script('zsh')
  const stubs = `compdef() { print -r -- "compdef $*" }; _describe() { print -rl -- "\${(@P)2}" }`
  const code = `${stubs}; source '${path}'; words=(latchkey keys show app); CURRENT=4; _latchkey`
  expect(runShell('zsh', '-fc', code)).toEqual(['compdef _latchkey latchkey', 'app-one:key', 'app-two:key'])
})

test.skipIf(Bun.which('fish') === null)('fish completes names, files and commands', async () => {
  const path = await script('fish')
  const complete = (line: string) => runShell('fish', '-N', '-c', `source '${path}'; complete -C '${line}'`)
  expect(complete('latchkey keys show app')).toEqual(['app-one\tkey', 'app-two\tkey'])
  expect(complete('latchkey keys d').map((line) => line.split('\t')[0])).toEqual(['delete', 'disable'])
  writeFileSync(join(folder.path, 'body.json'), '')
  expect(complete('latchkey prices import bod').map((line) => line.split('\t')[0])).toEqual(['body.json'])
})

describe('the manual page', () => {
  test('has every command with its options, every setting and every topic', async () => {
    const { code, stdout } = await run('man')
    expect(code).toBe(0)
    expect(stdout).toStartWith('.TH LATCHKEY 1 ')
    expect(stdout).toContain('.SS "keys create"\n')
    expect(stdout).toContain('\\fB\\-\\-budget\\-reset\\fR \\fI<period>\\fR')
    expect(stdout).toContain('\\fBLATCHKEY_LISTEN\\fR')
    expect(stdout).toContain('\\fBtroubleshooting\\fR')
    expect(stdout).not.toContain('__complete')
  })

  test.skipIf(Bun.which('mandoc') === null)('has no error in its roff', async () => {
    const path = join(folder.path, 'latchkey.1')
    writeFileSync(path, (await run('man')).stdout)
    const { stdout } = spawnSync('mandoc', ['-T', 'lint', '-W', 'warning', path], { encoding: 'utf8' })
    // A page without a date is the same in every build.
    expect(stdout.split('\n').filter((line) => line !== '' && !line.includes('missing date'))).toEqual([])
  })

  test.skipIf(Bun.which('man') === null)('is shown by man', async () => {
    const path = join(folder.path, 'latchkey.1')
    writeFileSync(path, (await run('man')).stdout)
    const { status, stdout } = spawnSync('man', ['-l', path], {
      encoding: 'utf8',
      env: { ...process.env, MANPAGER: 'cat' },
    })
    expect([status, stdout.includes('workload identity federation')]).toEqual([0, true])
  })
})
