// What a start loads: the modules that the server imports before its first request.
import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

const root = join(import.meta.dirname, '../..')
const transpiler = new Bun.Transpiler({ loader: 'ts' })

/** The files and packages that are loaded with this one. `import()` and `require` load later. */
function loadedWith(entry: string): Set<string> {
  const loaded = new Set<string>()
  const waiting = [join(root, entry)]
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (loaded.has(relative(root, file))) continue
    loaded.add(relative(root, file))
    for (const { path, kind } of transpiler.scanImports(readFileSync(file, 'utf8'))) {
      if (kind !== 'import-statement') continue
      const own = join(dirname(file), path)
      if (!path.startsWith('.')) loaded.add(path)
      else if (own.endsWith('.ts') && existsSync(own)) waiting.push(own)
    }
  }
  return loaded
}

const loaded = loadedWith('src/server/server.ts')

test('a start loads the database and the routes of workloads', () => {
  for (const needed of ['drizzle-orm/libsql/sqlite3', 'db/file/open.ts', 'src/server/workload-routes.ts'])
    expect(loaded).toContain(needed)
})

test('a start loads none of what only administrators, archives, backups and database servers need', () => {
  const late = [
    ...['arktype', 'yaml', '@libsql/client', '@libsql/client/http', 'drizzle-orm/libsql'],
    // Each takes 2 to 8 ms to load.
    ...['node:http', 'node:https', 'node:zlib', 'node:worker_threads', 'node:readline'],
    ...['src/admin/operations.ts', 'src/archive/archive-rows.ts', 'src/backup/copy.ts', 'src/audit-log/prune.ts'],
  ]
  expect(late.filter((name) => loaded.has(name))).toEqual([])
})
