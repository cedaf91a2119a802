// A restore that is killed, after each of its steps and at random moments, leaves the old database or the new one, and either starts.
import { expect } from 'bun:test'
import { cpSync, existsSync, readdirSync, watch } from 'node:fs'
import { join } from 'node:path'
import { createChance, killsOr } from '../support/chance.ts'
import { compiledProgram } from '../support/compiled-program.ts'
import { readDatabaseFile } from '../support/database-file.ts'
import { onFile } from '../support/file-only.ts'
import { type Installation, install } from '../support/installation.ts'
import { briefRuntime, runCommand, temporaryFolder } from '../support/latchkey.ts'

const chance = createChance('restore')

const { afterAll, afterEach, beforeAll, beforeEach, test } = onFile('backup by copy')

const kills = killsOr(4)

let installed: Installation
let backup: string
beforeAll(async () => {
  installed = await install()
  const served = await installed.serve()
  backup = join(installed.folder, 'old.backup')
  await served.ask('keys.create', { name: 'before' })
  await served.ask('backup.create', { to: backup })
  await served.ask('keys.create', { name: 'after' })
  // The log still has both keys.
  await served.serving.stop('SIGKILL')
})
afterAll(() => installed.remove())

let copy: ReturnType<typeof temporaryFolder>
let path: string
let env: Record<string, string>
beforeEach(() => {
  copy = temporaryFolder()
  cpSync(installed.folder, copy.path, { recursive: true, filter: (source) => !source.endsWith('.sock') })
  path = join(copy.path, 'latchkey.db')
  env = { ...installed.env, LATCHKEY_DATABASE_URL: `file:${path}` }
})
afterEach(() => copy.remove())

/** Whether the database in place is the old or the new one; any other content fails. */
function stateOf(database = path): 'old' | 'new' {
  const [integrity, keys = []] = readDatabaseFile(database, 'pragma integrity_check', 'select name from api_keys')
  expect(integrity).toEqual([{ integrity_check: 'ok' }])
  const names = keys.map(({ name }) => name)
  expect(names).toContain('before')
  return names.includes('after') ? 'old' : 'new'
}

/** A new database in place means that the old one is kept. */
function checkKept(): void {
  const kept = readdirSync(copy.path).filter((name) => /before-restore-\w+(-\d+)?$/.test(name))
  expect(stateOf() === 'new' ? kept.map((name) => stateOf(join(copy.path, name))) : ['old']).toContain('old')
}

const stepsOfRestore = 5

for (let steps = 0; steps <= stepsOfRestore; steps++)
  test(`killed after ${steps} of its steps, the ${steps < 4 ? 'old' : 'new'} database starts, and the next restore works`, async () => {
    const program = [process.execPath, join(import.meta.dirname, '../support/killed-restore.ts')]
    const { stdout } = await runCommand([String(steps), backup], { cwd: copy.path, env, program })
    expect(Number(stdout)).toBe(stepsOfRestore)
    expect(stateOf()).toBe(steps < 4 ? 'old' : 'new')
    checkKept()
    expect(await runCommand(['keys', 'list'], { cwd: copy.path, env })).toMatchObject({ code: 0, stderr: '' })
    expect(await runCommand(['restore', backup], { cwd: copy.path, env })).toMatchObject({ code: 0, stderr: '' })
    expect(stateOf()).toBe('new')
    expect(readdirSync(copy.path).filter((name) => name.includes('.restoring-'))).toEqual([])
  })

test(`killed at ${kills} random moments, a database is in place that starts`, async () => {
  for (let kill = 0; kill < kills; kill++) {
    const begun = Promise.withResolvers<void>()
    const watcher = watch(copy.path, (_, name) => {
      if (name?.includes('.restoring-')) begun.resolve()
    })
    const child = Bun.spawn([...compiledProgram(), 'restore', backup], {
      env: { ...briefRuntime, ...env },
      stdout: 'ignore',
      stderr: 'ignore',
    })
    await Promise.race([begun.promise, child.exited])
    watcher.close()
    await Promise.race([Bun.sleep(chance() * 300), child.exited])
    child.kill('SIGKILL')
    await child.exited
    expect(existsSync(path)).toBe(true)
    checkKept()
  }
  const { code, stderr } = await runCommand(['keys', 'list'], { cwd: copy.path, env })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(await runCommand(['usage', 'verify'], { cwd: copy.path, env })).toMatchObject({ code: 0 })
}, 120_000)
