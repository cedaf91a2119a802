// A client of one preset as a separate program. `post` creates versions, many at a time; `change` archives, restores,
// designates and reads until its standard input ends. It prints a JSON line when it is ready, and one with all
// responses at the end.
import { createChance } from './chance.ts'

const chance = createChance('preset-client')
export type Version = { id: string; version: number; config: { model: string }; system_prompt: string | null }
export type Preset = Record<string, unknown> & {
  status: string
  designated_version_id: string
  designated_version: Version
}
export type Posted = { posts: { model: string; data: Preset }[]; conflicts: number }
export type Changed = { archived: Preset[]; restored: Preset[]; designated: Preset[]; read: Preset[] }
export type PresetClientSettings = { url: string; key: string; name: string }

const workers = 100
const postsPerWorker = 5
const designators = 15

async function call(settings: PresetClientSettings, method: string, path = '', body?: object) {
  const response = await fetch(settings.url + path, {
    method,
    headers: { authorization: `Bearer ${settings.key}`, ...(body && { 'content-type': 'application/json' }) },
    body: body === undefined ? null : JSON.stringify(body),
  })
  const answer = (await response.json()) as { data: Preset }
  if (![200, method === 'POST' ? 409 : 404].includes(response.status))
    throw new Error(`${method} ${path} answered ${response.status} ${JSON.stringify(answer)}`)
  return { status: response.status, data: answer.data }
}

/** The body that identifies a version. */
export function bodyOf(model: string): object {
  return { model, temperature: 0.5, messages: [{ role: 'system', content: `I am ${model}` }] }
}

/** Repeats each post until it is accepted. The first refusal is recorded. */
async function post(settings: PresetClientSettings): Promise<Posted> {
  const posted: Posted = { posts: [], conflicts: 0 }
  const work = async (worker: number) => {
    for (let made = 0; made < postsPerWorker; ) {
      const model = `${settings.name}-${worker}-${made}`
      const { status, data } = await call(settings, 'POST', '/chat/completions', bodyOf(model))
      if (status === 409 && posted.conflicts++ === 0) void print('refused')
      if (status === 409) continue
      posted.posts.push({ model, data })
      made += 1
    }
  }
  await Promise.all(Array.from({ length: workers }, (_, worker) => work(worker)))
  return posted
}

/**
 * One client also archives and restores, and leaves the preset restored. The others only designate, which an archived
 * preset refuses.
 */
async function change(settings: PresetClientSettings, isOver: () => boolean): Promise<Changed> {
  const changed: Changed = { archived: [], restored: [], designated: [], read: [] }
  const ask = async (known: Preset[], ...[method, path, body]: [method: string, path?: string, body?: object]) => {
    const { status, data } = await call(settings, method, path, body)
    if (status === 200) known.push(data)
  }
  const designate = async () => {
    await ask(changed.read, 'GET')
    const latest = changed.read.at(-1)?.designated_version.version ?? 1
    await ask(changed.designated, 'PATCH', '', { designated_version: 1 + Math.floor(chance() * latest) })
  }
  const work = async (designator: number) => {
    while (!isOver()) {
      if (designator === 0) {
        await ask(changed.archived, 'DELETE')
        await ask(changed.restored, 'POST', '/restore')
      }
      await designate()
    }
  }
  await Promise.all(Array.from({ length: designators }, (_, designator) => work(designator)))
  return changed
}

function print(value: unknown): Promise<void> {
  return new Promise((written) => process.stdout.write(`${JSON.stringify(value)}\n`, () => written()))
}

if (import.meta.main) {
  const settings = JSON.parse(process.argv[3] ?? '') as PresetClientSettings
  let isOver = false
  const begun = new Promise<void>((resolve) => {
    process.stdin.once('data', () => resolve())
    process.stdin.once('end', () => {
      isOver = true
    })
  })
  await print('ready')
  await begun
  await print(await (process.argv[2] === 'post' ? post(settings) : change(settings, () => isOver)))
  process.exit()
}
