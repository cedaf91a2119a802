// The ways in which a request names a preset, and those in which it does not.
import { describe, expect, test } from 'bun:test'
import { readPresetReference, withoutPresetReference } from '../../src/presets/reference.ts'
import { isPresetSlug } from '../../src/values/preset-text.ts'

type Fields = Record<string, unknown>

describe('a slug', () => {
  const good = ['a', 'A-z_0.9~', 'x'.repeat(128), '...']
  const bad = ['', 'x'.repeat(129), 'a b', 'a/b', 'a@3', 'é', 'a\n', '%41', 'a:b']
  for (const slug of good) test(`may be ${slug.slice(0, 20)}`, () => expect(isPresetSlug(slug)).toBe(true))
  for (const slug of bad)
    test(`may not be ${JSON.stringify(slug.slice(0, 20))}`, () => expect(isPresetSlug(slug)).toBe(false))
})

describe('a request', () => {
  const named: [body: Fields, slug: string | undefined, version: number | undefined, left: Fields][] = [
    [{ model: 'a/b' }, undefined, undefined, { model: 'a/b' }],
    [{ model: 'a@b' }, undefined, undefined, { model: 'a@b' }],
    [{}, undefined, undefined, {}],
    [{ model: 7, preset: null }, undefined, undefined, { model: 7 }],
    [{ model: '@preset/s', x: 1 }, 's', undefined, { x: 1 }],
    [{ model: '@preset/s@3' }, 's', 3, {}],
    [{ model: 'a/b@preset/s' }, 's', undefined, { model: 'a/b' }],
    [{ model: 'a/b@preset/s@12' }, 's', 12, { model: 'a/b' }],
    [{ model: 'a/b', preset: 's' }, 's', undefined, { model: 'a/b' }],
    [{ preset: 's@3' }, 's', 3, {}],
    [{ model: '@preset/s', preset: 's' }, 's', undefined, {}],
    [{ model: 'a@preset/s@2', preset: 's@2' }, 's', 2, { model: 'a' }],
  ]
  for (const [body, slug, version, left] of named)
    test(`${JSON.stringify(body)} names ${slug ?? 'none'}`, () => {
      expect(readPresetReference(body)).toEqual(slug === undefined ? undefined : { slug, version })
      expect(withoutPresetReference(body)).toEqual(left)
    })

  const inModel =
    'model is not a preset reference: use "@preset/slug" or "vendor/model@preset/slug", with "@3" at the end for version 3'
  const beside = 'preset is not a preset reference: use "slug", with "@3" at the end for version 3'
  const refused: [body: Fields, message: string][] = [
    [{ model: '@preset/' }, inModel],
    [{ model: '@preset/a b' }, inModel],
    [{ model: '@preset/a/b' }, inModel],
    [{ model: '@preset/a@' }, inModel],
    [{ model: '@preset/a@0' }, inModel],
    [{ model: '@preset/a@1.5' }, inModel],
    [{ model: '@preset/a@3@4' }, inModel],
    [{ model: '@preset/a@99999999999' }, inModel],
    [{ model: 'm@preset/a@preset/b' }, inModel],
    [{ model: `@preset/${'x'.repeat(129)}` }, inModel],
    [{ preset: '' }, beside],
    [{ preset: 7 }, beside],
    [{ preset: { slug: 'a' } }, beside],
    [{ preset: '@preset/a' }, beside],
    [{ model: '@preset/a', preset: 'b' }, 'model names the preset "a" and preset names "b": name only one preset'],
    [{ model: 'm@preset/a@2', preset: 'a' }, 'model names the preset "a@2" and preset names "a": name only one preset'],
    [{ model: 'm', models: ['a', '@preset/a'] }, 'models cannot name a preset: use model or preset'],
  ]
  for (const [body, message] of refused)
    test(`may not be ${JSON.stringify(body).slice(0, 60)}`, () =>
      expect(() => readPresetReference(body)).toThrow(message))
})
