// Two programs post to one preset, 200 posts at a time, while a third program and commands archive, restore and
// designate it. Every response is correct, every version exists once, and the changes form one history without gaps.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { chanceEnvironment } from '../support/chance.ts'
import { type Installation, install, type Served } from '../support/installation.ts'
import type { Row } from '../support/latchkey.ts'
import { bodyOf, type Changed, type Posted, type Preset, type Version } from '../support/preset-client.ts'
import { isServerKind } from '../support/server-kind.ts'

type Client = { nextLine: () => Promise<unknown>; begin: () => void; end: () => void; kill: () => Promise<number> }
/** The record of a post holds part of the preset; the record of any other change holds the whole row. */
type PresetRow = { latest_version: number; designated_version: number; status?: string; updated_at?: number }
type Change = Row & { operation: string; before: PresetRow | null; after: PresetRow }

function startClient(task: 'post' | 'change', settings: object): Client {
  const program = [process.execPath, join(import.meta.dirname, '../support/preset-client.ts')]
  const child = Bun.spawn([...program, task, JSON.stringify(settings)], {
    env: chanceEnvironment,
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const lines = (async function* () {
    let text = ''
    for await (const chunk of child.stdout) {
      const parts = (text + Buffer.from(chunk).toString()).split('\n')
      text = parts.pop() ?? ''
      yield* parts
    }
  })()
  return {
    nextLine: async () => {
      const { value } = await lines.next()
      if (value === undefined) throw new Error(`The client ended with exit code ${await child.exited}`)
      return JSON.parse(value)
    },
    begin: () => {
      child.stdin.write('\n')
      child.stdin.flush()
    },
    end: () => void child.stdin.end(),
    kill: () => {
      child.kill()
      return child.exited
    },
  }
}

let installation: Installation
let served: Served
beforeAll(async () => {
  installation = await install()
  served = await installation.serve()
})
afterAll(async () => {
  await served.serving.stop()
  await installation.remove()
})

/** The commands of an admin meanwhile. A preset that another client has just archived cannot be designated. */
async function changeByCommand(
  until: Promise<unknown>,
): Promise<Pick<Changed, 'archived' | 'restored' | 'designated'>> {
  let hasEnded = false
  void until.finally(() => {
    hasEnded = true
  })
  const changed = { archived: [] as Preset[], restored: [] as Preset[], designated: [] as Preset[] }
  const commands = {
    designated: ['designate', 'shared@1'],
    archived: ['archive', 'shared'],
    restored: ['restore', 'shared'],
  }
  const names = Object.keys(commands) as (keyof typeof commands)[]
  do
    for (const name of names) {
      const { code, stdout } = await installation.run('presets', ...commands[name], '--json')
      if (code === 0) changed[name].push(JSON.parse(stdout) as Preset)
    }
  while (!hasEnded)
  expect([changed.archived.length > 0, changed.restored.length > 0]).toEqual([true, true])
  return changed
}

const timed = (at: unknown, version: number) => `${new Date(at as string | number).toISOString()} ${version}`

test('versions are consecutive, answers true, and the last designation counts', async () => {
  const { baseUrl, ask, serving } = served
  const { key } = await ask<Row & { key: string }>('keys.create', { name: 'admin', kind: 'management' })
  const url = `${baseUrl}/presets/shared`
  const get = async <Answer>(path = ''): Promise<Answer> => {
    const response = await fetch(url + path, { headers: { authorization: `Bearer ${key}` } })
    expect(response.status).toBe(200)
    return (await response.json()) as Answer
  }
  await ask('presets.save', { preset: 'shared', dialect: 'chat', body: JSON.stringify(bodyOf('first')) })
  await ask('presets.archive', { preset: 'shared' })

  const posting = ['one', 'two'].map((name) => startClient('post', { url, key, name }))
  const changing = startClient('change', { url, key, name: 'three' })
  const clients = [...posting, changing]
  let posted: Posted[]
  let changed: Changed
  try {
    for (const client of clients) expect(await client.nextLine()).toBe('ready')
    for (const client of posting) client.begin()
    // All posts of these clients conflict until the third client restores the preset.
    for (const client of posting) expect(await client.nextLine()).toBe('refused')
    changing.begin()
    const posts = Promise.all(posting.map(({ nextLine }) => nextLine()))
    const commanded = await changeByCommand(posts)
    posted = (await posts) as Posted[]
    changing.end()
    const { archived, restored, designated, read } = (await changing.nextLine()) as Changed
    changed = {
      archived: [...archived, ...commanded.archived],
      restored: [...restored, ...commanded.restored],
      designated: [...designated, ...commanded.designated],
      read,
    }
  } finally {
    await Promise.all(clients.map(({ kill }) => kill()))
  }

  const { data: last } = await get<{ data: Preset }>()
  const versions: Version[] = []
  for (let total = 1; versions.length < total; ) {
    const page = await get<{ data: Version[]; total_count: number }>(`/versions?offset=${versions.length}&limit=100`)
    versions.push(...page.data)
    total = page.total_count
  }
  const posts = posted.flatMap((client) => client.posts)
  const numbers = posts.map(({ data }) => data.designated_version.version)

  // Each accepted post created one version, and rejected posts created none.
  expect(versions.map(({ version }) => version)).toEqual(Array.from({ length: posts.length + 1 }, (_, at) => at + 1))
  expect(new Set(versions.map(({ id }) => id)).size).toBe(versions.length)
  expect(numbers.toSorted((a, b) => a - b)).toEqual(versions.slice(1).map(({ version }) => version))
  for (const { conflicts } of posted) expect(conflicts).toBeGreaterThan(0)

  const statusTimes = [...changed.archived, ...changed.restored].map((preset) => preset.status_updated_at)
  for (const { model, data } of posts) {
    const version = versions[data.designated_version.version - 1]
    expect(version).toMatchObject({ config: { model, temperature: 0.5 }, system_prompt: `I am ${model}` })
    expect(data).toMatchObject({ slug: 'shared', status: 'active', designated_version_id: version?.id ?? '' })
    expect(data.designated_version).toEqual(version as Version)
    expect(data.updated_at).toBe((version as unknown as Preset).created_at)
    expect(statusTimes).toContain(data.status_updated_at)
  }
  for (const preset of [last, ...Object.values(changed).flat()]) {
    const { designated_version: designated, designated_version_id: id } = preset
    expect({ designated, id }).toEqual({ designated: versions[designated.version - 1] as Version, id: designated.id })
  }
  // On a server database, a response shows the preset as it is after the commit, when others can have changed it again.
  const isExact = !isServerKind
  for (const { status } of isExact ? changed.archived : []) expect(status).toBe('archived')
  for (const { status } of isExact ? [...changed.restored, ...changed.designated] : []) expect(status).toBe('active')
  for (const { status } of changed.read) expect(status).toBe('active')

  // Every change starts from the result of the previous change.
  const { data } = await ask<{ data: Change[] }>('audit.changes', { limit: 10_000 })
  const history = data.filter(({ kind }) => kind === 'preset').toReversed()
  const numbersOf = (row: PresetRow | null) => [row?.latest_version, row?.designated_version]
  expect(history.map(({ before }) => numbersOf(before))).toEqual(
    [null, ...history.slice(0, -1).map(({ after }) => after)].map(numbersOf),
  )
  const saves = history.filter(({ operation }) => operation === 'presets.save')
  expect(saves.map(({ after }) => after.latest_version)).toEqual(versions.map(({ version }) => version))
  const archivings = history.flatMap(({ operation }, at) => (operation === 'presets.archive' ? [at] : []))
  expect(archivings.map((at) => history[at + 1]?.operation)).toEqual(archivings.map(() => 'presets.restore'))
  for (const { after } of saves) expect(after.designated_version).toBe(after.latest_version)
  const designations = history.filter(({ operation }) => operation === 'presets.update')
  const recorded = designations.map(({ after }) => timed(after.updated_at, after.designated_version)).toSorted()
  const answered = changed.designated.map((preset) => timed(preset.updated_at, preset.designated_version.version))
  expect(isExact ? answered.toSorted() : recorded).toEqual(recorded)
  // The clients overlapped: there are designations between posts.
  const [first = 0, end = 0] = [saves[1], saves.at(-1)].map((save) => history.indexOf(save as Change))
  const between = history.slice(first, end).filter((change) => designations.includes(change))
  expect(between.length).toBeGreaterThan(0)

  // The last change determines the designated version, whether it is a post or a designation.
  expect(last).toMatchObject({
    status: 'active',
    designated_version: { version: history.at(-1)?.after.designated_version ?? 0 },
  })

  await serving.stop()
  served = await installation.serve()
  expect(await served.ask<object>('presets.show', { preset: 'shared' })).toEqual(last)
})
