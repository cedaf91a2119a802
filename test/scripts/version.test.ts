// Which program this is: what a report of an error has to say. The binary's own commit is in test/binary.
import { afterAll, describe, expect, test } from 'bun:test'
import { migrations } from '../../db/schema/migrate.ts'
import packageJson from '../../package.json' with { type: 'json' }
import { fromSource, runCommand, temporaryFolder } from '../support/latchkey.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())
const run = (...args: string[]) => runCommand(args, { cwd: folder.path, program: fromSource })

const facts = {
  version: packageJson.version,
  commit: 'source',
  bun: Bun.version,
  schema: migrations.at(-1)?.version,
}

describe('version, commit, Bun and schema', () => {
  for (const args of [['version'], ['-v']]) {
    test(`are lines of ${args.join(' ')}`, async () => {
      const { code, stdout, stderr } = await run(...args)
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      const lines = stdout.trimEnd().split('\n')
      expect(lines.map((line) => line.split(/ {2,}/))).toEqual([
        ['version', facts.version],
        ['commit', facts.commit],
        ['Bun', facts.bun],
        ['schema', String(facts.schema)],
      ])
    })
  }

  for (const args of [
    ['version', '--json'],
    ['--json', 'version'],
    ['-v', '--json'],
    ['--json', '-v'],
  ]) {
    test(`are members of ${args.join(' ')}`, async () => {
      const { code, stdout } = await run(...args)
      expect({ code, told: JSON.parse(stdout) as object }).toEqual({ code: 0, told: facts })
    })
  }
})

test('--version prints the version alone, for scripts', async () => {
  expect(await run('--version')).toEqual({ code: 0, stdout: `${facts.version}\n`, stderr: '' })
})

test('a program that runs from its source does not list its contents', async () => {
  for (const option of ['--sbom', '--licenses'])
    expect(await run('version', option)).toEqual({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('bun run build'),
    })
})
