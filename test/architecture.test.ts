// The plan of the house, held against the imports: which way they point, what stays pure, and where the runtimes are named.
import { describe, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import type { AdminContext } from '../src/admin/operation/context.ts'
import type { OperationsContext } from '../src/admin/operations.ts'

const root = join(import.meta.dirname, '..')
const files = ['src/**/*.ts', 'db/**/*.ts', 'scripts/**/*.ts'].flatMap((pattern) => [
  ...new Bun.Glob(pattern).scanSync(root),
])
const sources = new Map(files.map((file) => [file, readFileSync(join(root, file), 'utf8')]))

/** The files of ours that a file imports, types included. */
function importsOf(file: string): string[] {
  const text = sources.get(file) ?? ''
  const paths = [...text.matchAll(/from '(\.[^']+)'/g)].map((match) => match[1] ?? '')
  return paths.map((path) => relative(root, join(root, dirname(file), path))).filter((path) => sources.has(path))
}

const edges = files.flatMap((from) => importsOf(from).map((to) => ({ from, to })))
const offending = (isWrong: (edge: { from: string; to: string }) => boolean) =>
  edges.filter(isWrong).map(({ from, to }) => `${from} imports ${to}`)
/** The room of a file, or the file itself where it lies loose in src. */
const placeOf = (file: string) =>
  dirname(file) === 'src' ? file.slice('src/'.length, -'.ts'.length) : dirname(file).slice('src/'.length)
const isAbove = (one: string, other: string) => plan.indexOf(one) > plan.indexOf(other)
const isEndpoint = (file: string) =>
  !['src/http/endpoint.ts', 'src/server/all-endpoints.ts'].includes(file) && /(^|[/-])endpoints?\.ts$/.test(file)

/** Rooms and loose files of src, the lowest first: each imports only from those before it. */
const plan = [
  ...[
    'limits',
    'fault',
    'runtime',
    'agent',
    'agent/login',
    'agent/commands',
    'scheduling',
    'values',
    'observe',
    'manual',
    'http',
    'tokens',
    'spending',
    'keys',
  ],
  ...['federation/subject-token', 'federation/condition', 'federation/issuer', 'federation', 'federation/lint'],
  ...['federation/recording', 'page'],
  ...['presets/schema', 'presets/dialects', 'presets'],
  ...[
    'inference/upstream',
    'inference/models',
    'inference/queue',
    'inference',
    'monitoring/alerts',
    'monitoring',
    'archive',
  ],
  ...[
    'audit-log/transparency',
    'audit-log',
    'settings',
    'registry',
    'nodes',
    'backup',
    ...[
      'admin/kinds',
      'admin/operation',
      'admin/reports',
      'admin/policies',
      'admin/issuers',
      'admin/keys',
      'admin/upstreams',
      'admin/budgets',
      'admin/webhooks',
    ],
    'admin/sessions',
    'admin/sign-in',
    'admin/presets',
    'admin/config',
    'admin/doctor',
    'admin',
    'admin/transport',
    'server',
    'main',
  ],
]

/** Where every exchange and every preset is decided: no clock, network, database, Request or Response. */
const pureRules = [
  'agent/identity',
  'agent/caller-check',
  'agent/forwarding-rules',
  'agent/unverified-claims',
  'agent/client-environment',
  'federation/grants',
  'federation/subject-token/claims',
  'federation/policy',
  'federation/policy-binding',
  'federation/pipeline',
  'federation/subject-token/github-subject',
  'federation/issuer/key-set',
  'federation/issuer/issuer-url',
  'tokens/jwt-text',
  'presets/preset',
  'presets/reference',
  'presets/apply',
].map((name) => `src/${name}.ts`)
/** Rooms in which every file is such a rule. */
const pureRooms = [
  'src/federation/condition/',
  'src/federation/lint/',
  'src/presets/schema/',
  'src/presets/dialects/',
  'src/values/',
  'src/audit-log/transparency/',
]
const pureFiles = [...pureRules, ...files.filter((file) => pureRooms.some((room) => file.startsWith(room)))]

describe('imports', () => {
  test('were found', () => {
    expect(edges.length).toBeGreaterThan(100)
  })

  test('of db lead nowhere but db', () => {
    expect(offending(({ from, to }) => from.startsWith('db/') && !to.startsWith('db/'))).toEqual([])
  })

  test('of limits and fault lead nowhere', () => {
    expect(offending(({ from }) => from === 'src/limits.ts' || from === 'src/fault.ts')).toEqual([])
  })

  test('of src lead to scripts from main alone, and to app from server alone', () => {
    expect(
      offending(({ from, to }) => to.startsWith('scripts/') && from.startsWith('src/') && from !== 'src/main.ts'),
    ).toEqual([])
    expect(offending(({ from, to }) => to === 'src/server/app.ts' && from !== 'src/server/server.ts')).toEqual([])
    expect(offending(({ to }) => to === 'src/main.ts')).toEqual([])
  })

  test('reach an endpoint only from the two lists of routes', () => {
    expect(files.filter(isEndpoint).length).toBeGreaterThanOrEqual(3)
    // context.ts takes from them what they need, as types.
    const lists = ['src/server/workload-routes.ts', 'src/server/all-endpoints.ts', 'src/server/context.ts']
    expect(offending(({ from, to }) => isEndpoint(to) && !lists.includes(from))).toEqual([])
  })

  test('lead down: to what stands before it in the plan', () => {
    const places = files.filter((file) => file.startsWith('src/')).map(placeOf)
    expect([...new Set(places)].filter((place) => !plan.includes(place))).toEqual([])
    expect(
      offending(
        ({ from, to }) => to.startsWith('src/') && from.startsWith('src/') && isAbove(placeOf(to), placeOf(from)),
      ),
    ).toEqual([])
  })

  test('lie in rooms: loose in src are main, fault and limits, and nothing is in db', () => {
    const inFolder = (folder: string) => files.filter((file) => dirname(file) === folder).toSorted()
    expect(inFolder('src')).toEqual(['src/fault.ts', 'src/limits.ts', 'src/main.ts'])
    expect(inFolder('db')).toEqual([])
    const folders = new Set(files.filter((file) => file.startsWith('db/')).map((file) => file.split('/')[1]))
    expect([...folders].toSorted()).toEqual(['file', 'read', 'remote', 'schema', 'tables', 'write'])
  })

  test('have no cycle', () => {
    const done = new Set<string>()
    const cycles: string[] = []
    const visit = (file: string, path: string[]) => {
      if (path.includes(file)) cycles.push([...path.slice(path.indexOf(file)), file].join(' → '))
      if (path.includes(file) || done.has(file)) return
      for (const next of importsOf(file)) visit(next, [...path, file])
      done.add(file)
    }
    for (const file of files) visit(file, [])
    expect(cycles).toEqual([])
  })
})

describe('files', () => {
  test('of src name Bun and Deno in the room runtime alone', () => {
    const naming = files.filter(
      (file) =>
        file.startsWith('src/') &&
        /\b(Bun|Deno)\s*[.?]|'(Bun|Deno)' in |'bun'|"bun"/.test(withoutComments(sources.get(file) ?? '')),
    )
    expect(naming.map(placeOf)).toEqual(Array(naming.length).fill('runtime'))
    expect(naming).toContain('src/runtime/bun.ts')
  })

  test('repeat work with the timer of src/scheduling alone, except in the agent, which is one portable file', () => {
    const repeating = files.filter((file) => /\bsetInterval\b/.test(withoutComments(sources.get(file) ?? '')))
    expect(repeating).toEqual(['src/agent/listener.ts', 'src/scheduling/every.ts'])
  })

  test('that decide stay pure', () => {
    for (const file of pureFiles) {
      expect(sources.has(file)).toBe(true)
      const impure =
        /\bDate\.now\b|\bnew Date\(\)|(?<!-)\bfetch\b|\bRequest\b|\bResponse\b|\bsetTimeout\b|Math\.random|process\./.exec(
          withoutComments(sources.get(file) ?? ''),
        )
      expect({ file, impure: impure?.[0] }).toEqual({ file, impure: undefined })
    }
  })

  test('write to the database through db/write/write.ts alone', () => {
    const writing = files.filter((file) => /\.(batch|transaction)\(|\bdatabase\.commit\(/.test(sources.get(file) ?? ''))
    expect(writing.toSorted()).toEqual(['db/remote/server-database.ts', 'db/schema/migrate.ts', 'db/write/write.ts'])
  })

  test('take from the context of admin operations what they need: only the server has it whole', () => {
    const naming = files.filter((file) => /\bAdminContext\b/.test(sources.get(file) ?? ''))
    expect(naming).toEqual(['src/admin/operation/context.ts', 'src/server/context.ts'])
    const served = files.filter((file) =>
      /\b(Open)?Context\b.* from '.*\/server\/context\.ts'/.test(sources.get(file) ?? ''),
    )
    expect(served).toEqual([])
    // The compiler refuses this line when the context has a member that no operation needs.
    const unneeded: Record<Exclude<keyof AdminContext, keyof OperationsContext>, never> = {}
    expect(unneeded).toEqual({})
  })

  test('begin by saying what they are for', () => {
    const silent = files.filter((file) => !file.endsWith('.d.ts') && !/^(#!.*\n)?\/\/ \S/.test(sources.get(file) ?? ''))
    expect(silent).toEqual([])
  })

  test('name types by nouns: no participle, no adjective, no preposition', () => {
    const nouns = /(?:Setting|Finding|Listing|Binding|Spending|Grouping|Recording|Meaning)$/
    // What a commit takes; its engineer renames it.
    const exceptions = ['Changing']
    const names = files.flatMap((file) =>
      [...(sources.get(file) ?? '').matchAll(/^(?:export )?type (\w+)/gm)].map(([, name = '']) => name),
    )
    expect(names.length).toBeGreaterThan(500)
    const isOther = (name: string) =>
      (/(?:^|[a-z])(?:[A-Z][a-z]*ing|[A-Z][a-z]*[^e]ed)$/.test(name) && !nouns.test(name)) ||
      /^(?:About|Within|Together|Ours|Given|Known|Unknown|Is[A-Z]\w*|Held|Kept|Made|Found|Sent|Shown|Seen|Spent|Live|\w+[a-z]able)$(?<!Table)/.test(
        name,
      )
    expect(names.filter((name) => isOther(name) && !exceptions.includes(name))).toEqual([])
  })

  test('of a room export no two functions of one name', () => {
    const exported = [...files, ...new Bun.Glob('src/page/assets/*.js').scanSync(root)].flatMap((file) => {
      const text = sources.get(file) ?? readFileSync(join(root, file), 'utf8')
      // A function with overloads counts once.
      const names = new Set([...text.matchAll(/^export (?:async )?function\*? (\w+)/gm)].map(([, name = '']) => name))
      const room = file.startsWith('src/') ? file.split('/', 2).join('/') : file.split('/', 1).join()
      return [...names].map((name) => ({ file, name: `${room}: ${name}` }))
    })
    expect(exported.length).toBeGreaterThan(1000)
    const twice = [...Map.groupBy(exported, ({ name }) => name)].filter(([, found]) => found.length > 1)
    expect(twice.map(([name, found]) => [name, ...found.map(({ file }) => file)].join(' '))).toEqual([])
  })

  test('stay small enough to read in one go', () => {
    const long = files.filter((file) => (sources.get(file) ?? '').split('\n').length > 251)
    expect(long).toEqual([])
  })
})

describe('tests', () => {
  test('leave to chance only what one seed repeats', () => {
    const found = [...new Bun.Glob('test/**/*.ts').scanSync(root)]
    const random = new RegExp(['Math', 'random'].join('\\.'))
    expect(found.length).toBeGreaterThan(300)
    expect(found.filter((file) => random.test(readFileSync(join(root, file), 'utf8')))).toEqual([])
  })
})

describe('the repository', () => {
  const tracked = trackedFiles()

  test('has no file that a program made, and none over 1 MB', () => {
    expect(tracked.length).toBeGreaterThan(1000)
    expect(tracked.filter((file) => /(^dist\/|\.bun-build$|\.node$)/.test(file))).toEqual([])
    expect(
      tracked.filter((file) => (statSync(join(root, file), { throwIfNoEntry: false })?.size ?? 0) > 2 ** 20),
    ).toEqual([])
  })
})

/** What git has. Of a copy without git, everything but what is installed and built. */
function trackedFiles(): string[] {
  const { status, stdout } = spawnSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 })
  if (status === 0) return stdout.split('\0').filter((file) => file !== '')
  return [...new Bun.Glob('{*,{src,db,scripts,test}/**/*}').scanSync({ cwd: root, dot: true })]
}

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
}
