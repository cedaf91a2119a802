// What a configuration document with 5,000 objects of a kind costs, new and then changed: the time that it takes to plan and apply, and the
// longest hold of the event loop meanwhile, in CPU time of the main thread.
import { installLatchkey, rounds } from './measure.ts'
import { addRound, type Result } from './report.ts'
import { measureOperations } from './review.ts'

const objects = 5_000
const roundsMax = 3

/** An entry by its number; the second version of each differs from the first one. */
const entries: Record<string, (index: number, version: number) => object> = {
  keys: (index, version) => ({ name: `app-${index}`, limit: index + version, allowed_models: ['meta/*'] }),
  policies: (index, version) => ({
    ...{ name: `app-${index}`, issuer: 'idp', key: 'key', audience: `https://${version}.example.com` },
    subject: `system:serviceaccount:app-${index}:runner`,
  }),
  presets: (index, version) => ({
    ...{ slug: `app-${index}`, config: { model: 'meta/llama', temperature: version / 10 } },
    system_prompt: `You help the customers of shop ${index}.`,
  }),
  issuers: (index, version) => ({
    ...{ name: `app-${index}`, issuer_url: `https://app-${index}.example.com` },
    clock_skew_seconds: version,
  }),
  prices: (index, version) => ({ model: `meta/llama-${index}`, prompt: version, completion: 0.6 }),
}

export async function benchDocuments(): Promise<Result[]> {
  const { folder, run } = await installLatchkey()
  await run('keys', 'create', '--name', 'key')
  await run('issuers', 'add', '--name', 'idp', '--issuer-url', 'https://idp.example.com')
  const results: Result[] = []
  for (const [kind, entryOf] of Object.entries(entries)) {
    const made = ['new', 'changed'].map(
      (state): Result => ({
        bench: 'documents',
        load: `5,000 ${state} ${kind}`,
        concurrency: 0,
        arm: 'apply',
        figures: {},
      }),
    )
    results.push(...made)
    const documents = made.map((_, version) => ({
      ...{ latchkey: 1, owner: 'platform' },
      [kind]: Array.from({ length: objects }, (_, index) => entryOf(index, version)),
    }))
    for (let round = 0; round < Math.min(rounds, roundsMax); round++) {
      // The first use of a shape, and of all code, is no part of it.
      const warm = { document: { ...documents[0], [kind]: [entryOf(0, 0)] } }
      const asked = documents.map((document): [string, object] => ['config.apply', { document, adopt: true }])
      const [, ...measured] = await measureOperations(folder, [['config.plan', warm], ...asked])
      for (const [index, { milliseconds, cpuMilliseconds: _, longestMilliseconds, response }] of measured.entries()) {
        const { counts } = response as { counts: Record<string, number> }
        if (counts[index === 0 ? 'create' : 'update'] !== objects) throw new Error(`Applied ${JSON.stringify(counts)}`)
        const result = made[index]
        if (result !== undefined) addRound(result, { milliseconds, longestMilliseconds })
      }
    }
  }
  return results
}
