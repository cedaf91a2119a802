import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { type as arktype } from 'arktype'
import { prepareType, type } from '../../src/values/deferred-type.ts'

test('a type accepts and refuses what arktype itself does, with the same words', () => {
  const define = (make: typeof arktype) => {
    const name = make('string').narrow((text, context) => text !== 'no' || context.mustBe('another word'))
    const list = make({ name: name.configure({ title: 'Name' }), 'tags?': make('string').array().atMostLength(2) })
    return list.or(make("'none'"))
  }
  const [ours, theirs] = [define(type), define(arktype)]
  for (const value of [
    { name: 'yes' },
    { name: 'no' },
    { name: 1 },
    { name: 'yes', tags: ['a', 'b'] },
    { name: 'yes', tags: ['a', 'b', 'c'] },
    'none',
    'some',
    null,
  ]) {
    const [our, their] = [ours(value), theirs(value)]
    expect(our instanceof type.errors).toBe(their instanceof arktype.errors)
    expect<unknown>(our instanceof type.errors ? our.summary : our).toEqual(
      their instanceof arktype.errors ? their.summary : their,
    )
  }
  const options = { fallback: ({ base }: { base: object }) => base }
  expect(ours.in.toJsonSchema(options)).toEqual(theirs.in.toJsonSchema(options))
})

test('a definition is parsed at the first use of its type, and once', () => {
  let narrowed = 0
  const define = () => type('string').pipe((text) => text.length)
  const count = define().narrow(() => {
    narrowed += 1
    return true
  })
  expect(narrowed).toBe(0)
  expect(count('four')).toBe(4)
  expect(count('seven77')).toBe(7)
  expect(narrowed).toBe(2)
})

test('a wrong definition is an error at its first use', () => {
  const wrong = type('strin' as 'string')
  expect(() => wrong('text')).toThrow(/'strin' is unresolvable/)
})

test('an object without members is accepted as arktype accepts it, and then loads nothing', () => {
  let parsed = 0
  const counted = (name: string) =>
    new Proxy(
      { [name]: 'string' },
      {
        get: (target, key) => {
          parsed += 1
          return Reflect.get(target, key) as unknown
        },
      },
    ) as { 'name?': 'string' }
  const optional = type(counted('name?'))
  const empty = {}
  expect(optional(empty)).toBe(empty)
  expect(parsed).toBe(0)
  expect(optional({ name: 1 } as object) instanceof type.errors).toBe(true)
  expect(parsed).toBeGreaterThan(0)

  const define = (make: typeof arktype) => [
    make({ '+': 'reject', 'name?': 'string', 'count?': 'number' }),
    make({ name: 'string', 'count?': 'number' }),
    make({ name: "string = 'usual'" }),
    make({ 'name\\?': 'string' }),
    make({ '...': make({ name: 'string' }), 'count?': 'number' }),
    make({ '[string]': 'number' }),
    make({ 'name?': 'string' }).narrow((_value, context) => context.mustBe('something')),
    make({ 'name?': 'string' }).pipe(() => 'piped'),
    make('string[]'),
  ]
  for (const [index, theirs] of define(arktype).entries())
    for (const value of [{}, [], null, new (class Some {})(), Object.create({ name: 1 })]) {
      const our = define(type)[index]?.(value)
      const their = theirs(value)
      const textOf = (result: unknown) => (result instanceof type.errors ? result.summary : result)
      expect(textOf(our)).toEqual(textOf(their))
    }
})

test('the library is loaded in parts, and other work comes between them', async () => {
  const program = `
    const { loadTypes, type } = await import('./src/values/deferred-type.ts')
    const count = () => Object.keys(require.cache).filter((file) => file.includes('node_modules/arktype/')).length
    const counts = []
    await loadTypes(async () => counts.push(count()))
    const all = count()
    type('string')('text')
    console.log(JSON.stringify([counts.every((each, at) => each > (counts[at - 1] ?? 0)), counts.length, count() - all]))`
  const { stdout, stderr } = Bun.spawnSync([process.execPath, '-e', program], {
    cwd: join(import.meta.dirname, '../..'),
  })
  expect([stdout.toString().trim(), stderr.toString()]).toEqual(['[true,10,0]', ''])
})

test('a type is prepared part by part, with a rest after each, and is then what it was', async () => {
  const parsed: string[] = []
  const named = (name: string) =>
    type(
      new Proxy(
        {},
        {
          ownKeys: () => {
            if (parsed.at(-1) !== name) parsed.push(name)
            return [name]
          },
          get: (_, key) => (key === name ? 'string' : undefined),
          getOwnPropertyDescriptor: (_, key) =>
            key === name ? { value: 'string', enumerable: true, configurable: true } : undefined,
        },
      ),
    )
  const whole = type({ 'first?': named('a'), 'list?': named('b').array().atMostLength(1) })
  parsed.length = 0
  let rests = 0
  const seen: [number, string | undefined][] = []
  await prepareType(whole, async () => {
    rests += 1
    seen.push([rests, parsed.at(-1)])
  })
  // Two objects, the list, its bound, and the whole.
  expect(seen.map(([rest]) => rest)).toEqual([1, 2, 3, 4, 5])
  expect(parsed).toEqual(['a', 'b'])
  expect(whole({ list: [{ b: 'x' }, { b: 'y' }] })).toBeInstanceOf(type.errors)
  expect(whole({ list: [{ b: 'x' }] })).toEqual({ list: [{ b: 'x' }] })
  await prepareType(whole, () => Promise.reject(new Error('It was prepared')))
})
