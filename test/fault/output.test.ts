// The exit code reports output that could not be written. (Linux has a device that is always full.)
import { afterAll, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { compiledProgram } from '../support/compiled-program.ts'
import { temporaryFolder } from '../support/latchkey.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())

/** Runs a shell command with `latchkey` as the program. */
async function shell(line: string) {
  const script = `latchkey() { ${compiledProgram()
    .map((part) => `'${part}'`)
    .join(' ')} "$@"; }\n${line}`
  const child = Bun.spawn(['sh', '-c', script], { cwd: folder.path, env: {}, stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { code: await child.exited, stdout, stderr }
}

test.skipIf(!existsSync('/dev/full'))('output to a full disk fails and is reported (needs /dev/full)', async () => {
  const { code, stderr } = await shell('latchkey init --json > /dev/full')
  expect(code).toBe(1)
  expect(JSON.parse(stderr)).toEqual({ error: { code: 'internal', message: expect.stringContaining('ENOSPC') } })
})

test('a reader that has seen enough is no failure', async () => {
  await shell('latchkey init')
  expect(await shell('latchkey keys list | head -n 1; exit 0')).toMatchObject({ code: 0, stderr: '' })
})
