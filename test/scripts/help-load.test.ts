// Help describes every command without what only running one needs: no shape is parsed.
import { expect, test } from 'bun:test'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')

test('the library of shapes is not loaded to describe all commands, and is loaded once a shape is used', () => {
  const program = `
    const { loadProgram } = await import('./scripts/latchkey.ts')
    const hasLibrary = () => Object.keys(require.cache).some((file) => file.includes('node_modules/arktype/'))
    const program = await loadProgram(['--help'])
    const before = hasLibrary()
    const { issuerUrlShape } = await import('./src/admin/kinds/issuer-shapes.ts')
    issuerUrlShape('x')
    console.log(JSON.stringify([program.commands.length > 20, before, hasLibrary()]))`
  const { stdout, stderr } = Bun.spawnSync([process.execPath, '-e', program], { cwd: root })
  expect([stdout.toString().trim(), stderr.toString()]).toEqual(['[true,false,true]', ''])
})
