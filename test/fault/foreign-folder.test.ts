// Files of another user, usually root: the error names the owner, the mode and the command to run. As root, these tests
// switch to the user daemon.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, chownSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Finished, runCommand, temporaryFolder } from '../support/latchkey.ts'

const isRoot = process.getuid?.() === 0
const [daemon, nobody] = [1, 65_534]
const main = join(import.meta.dirname, '../../src/main.ts')
/** The user daemon cannot run the program from a checkout in root's home folder. */
const isReachable = !isRoot || foldersAbove(main).every((path) => (statSync(path).mode & 0o001) !== 0)

function foldersAbove(path: string): string[] {
  return path === dirname(path) ? [] : [dirname(path), ...foldersAbove(dirname(path))]
}

let folder: ReturnType<typeof temporaryFolder>
let data: string
beforeEach(async () => {
  folder = temporaryFolder()
  chmodSync(folder.path, 0o755)
  data = join(folder.path, 'data')
  expect((await runCommand(['init'], { cwd: folder.path, env })).code).toBe(0)
})
afterEach(() => {
  chmodSync(data, 0o700)
  folder.remove()
})
const env = { LATCHKEY_DATABASE_URL: 'file:data/latchkey.db', BUN_CONFIG_MAX_HTTP_REQUESTS: '256' }

/** Runs a command as daemon if this process is root, and otherwise as the current user. */
const runLower = (...args: string[]) => runAs(daemon, ...args)

function runAs(id: number, ...args: string[]): Promise<Finished> {
  const lower = isRoot ? `process.setgid(${id}); process.setuid(${id}); ` : ''
  const script = `process.argv.splice(1, 0, ''); ${lower}await import(${JSON.stringify(main)})`
  return runCommand(args, { cwd: folder.path, env, program: [process.execPath, '-e', script, '--'] })
}

function giveToDaemon() {
  if (!isRoot) return
  for (const path of [data, ...readdirSync(data).map((name) => join(data, name))]) chownSync(path, daemon, daemon)
}

const serve = ['serve', '--listen', '127.0.0.1:0']

describe.skipIf(!isRoot || !isReachable)(
  'what root made is refused to another user with owner, mode and chown:',
  () => {
    for (const [name, args] of [
      ['serve', serve],
      ['a command', ['keys', 'list']],
    ] as const) {
      test(`the folder, to ${name}`, async () => {
        const { code, stdout, stderr } = await runLower(...args)
        expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
        expect(stderr).toContain(`${JSON.stringify(data)} belongs to root (mode 0700)`)
        expect(stderr).toContain('runs as daemon')
        expect(stderr).toContain(`chown -R daemon ${data}`)
      })
    }

    test('the folder, which is not proposed to become that of nobody, nor that of a second user', async () => {
      const proposals = [await runAs(nobody, 'keys', 'list')]
      giveToDaemon()
      proposals.push(await runAs(2, 'keys', 'list'))
      for (const { code, stderr } of proposals) {
        expect(code).toBe(1)
        expect(stderr).toMatch(/belongs to (?:root|daemon) \(mode 0700\).*run it as (?:root|daemon)/)
        expect(stderr).not.toContain('chown')
      }
    })

    test('the database in a folder that is open', async () => {
      chmodSync(data, 0o777)
      const { code, stderr } = await runLower('keys', 'list')
      expect(code).toBe(3)
      expect(stderr).toContain(`${JSON.stringify(join(data, 'latchkey.db'))} belongs to root (mode 0600)`)
      expect(stderr).toContain(`chown daemon ${data}/latchkey.db*`)
    })

    test('the master key', async () => {
      giveToDaemon()
      chownSync(join(data, 'master.key'), 0, 0)
      const { code, stderr } = await runLower(...serve)
      expect(code).toBe(3)
      expect(stderr).toContain(`${JSON.stringify(join(data, 'master.key'))} belongs to root (mode 0600)`)
      expect(stderr).toContain(`chown daemon ${data}/master.key`)
    })

    test('a folder above, of which no change of owner is proposed', async () => {
      chmodSync(folder.path, 0o700)
      const { code, stderr } = await runLower('keys', 'list')
      expect(code).toBe(1)
      expect(stderr).toContain(`${JSON.stringify(folder.path)} belongs to root (mode 0700)`)
      expect(stderr).not.toContain('chown')
      const { stderr: ofFile } = await runLower('keys', 'list', '--config', 'site.conf')
      expect(ofFile).toContain('LATCHKEY_CONFIG is "site.conf", which cannot be read')
    })

    test('a folder of others with a file to read or to write, of which no change of owner is proposed', async () => {
      giveToDaemon()
      const others = join(folder.path, 'others')
      mkdirSync(others, { mode: 0o700 })
      const key = [
        'issuers',
        'add',
        '--name',
        'a',
        '--issuer-url',
        'https://idp.example',
        '--jwks-file',
        join(others, 'jwks'),
      ]
      for (const args of [key, ['backup', '--to', join(others, 'x.backup')]]) {
        const { code, stderr } = await runLower(...args)
        expect(code).toBeGreaterThan(0)
        expect(stderr).toContain(`${JSON.stringify(others)} belongs to root (mode 0700)`)
        expect(stderr).not.toContain('chown')
      }
    })

    test('a data folder of another group does not prevent a restore', async () => {
      const backup = join(data, 'x.backup')
      expect((await runCommand(['backup', '--to', backup], { cwd: folder.path, env })).code).toBe(0)
      giveToDaemon()
      chownSync(data, daemon, 0)
      expect(await runLower('restore', backup)).toMatchObject({ code: 0, stderr: '' })
    })
  },
)

test.skipIf(!isReachable)("a folder of one's own without the right to use it asks for the mode", async () => {
  giveToDaemon()
  chmodSync(data, 0o000)
  const { code, stderr } = await runLower('keys', 'list')
  expect(code).toBe(1)
  expect(stderr).toContain('(mode 0000)')
  expect(stderr).toContain(`chmod u+rwx ${data}`)
})

test.skipIf(!isReachable)('a folder that was handed over is served', async () => {
  giveToDaemon()
  expect(await runLower('keys', 'list', '--json')).toMatchObject({ code: 0, stderr: '' })
})
