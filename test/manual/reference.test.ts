// The reference, held against the program in both directions: endpoints, statuses, errors, parameters, variables and limits.
import { describe, expect, test } from 'bun:test'
import { conditionVariables } from '../../src/federation/condition/permitted.ts'
import { exchangeDescription } from '../../src/federation/openapi.ts'
import { oauthErrorOf, reasonNames } from '../../src/federation/subject-token/refusal.ts'
import { errorTypeWords, statusOfCode } from '../../src/http/reply.ts'
import * as limits from '../../src/limits.ts'
import { configKeys, passingParameters } from '../../src/presets/schema/parameters.ts'
import { namesIn, rowsOf, sectionOf } from '../support/manual.ts'
import { readOwnDocument } from '../support/openapi.ts'

const rows = (heading: string) => rowsOf(sectionOf('reference', heading))
const sorted = <Value>(values: Iterable<Value>) => [...new Set(values)].toSorted()

describe('the reference', () => {
  test('lists every endpoint with the credential that it needs', async () => {
    const sections = [
      ['No credential', ''],
      ['Access token or inference key', 'bearer'],
      ['Any credential', 'bearer'],
      ['Management key', 'management'],
    ] as const
    const listed = sections.flatMap(([heading, scheme]) =>
      rows(heading).flatMap(([path, methods = '']) =>
        (methods.split(':', 1)[0] ?? '').split(', ').map((method) => `${method} ${namesIn(path).join()} ${scheme}`),
      ),
    )
    const operations = Object.entries((await readOwnDocument()).paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { security }]) => {
        const schemes = security.flatMap((scheme) => Object.keys(scheme))
        return `${method.toUpperCase()} ${path} ${schemes.join()}`
      }),
    )
    expect(listed.toSorted()).toEqual(operations.toSorted())
  })

  test('lists every status of an error', () => {
    const listed = rows('Error shape').map(([status]) => Number(status))
    expect(listed).toEqual(sorted(Object.values(statusOfCode)))
  })

  test('lists every word of an error', () => {
    const [, words = ''] =
      /words of `error_type`[^:]*:([\s\S]*?)\n\nErrors/.exec(sectionOf('reference', 'Error shape')) ?? []
    expect(sorted(namesIn(words))).toEqual(sorted([...errorTypeWords]))
  })

  test('lists every status and error code of the token endpoint', () => {
    const table = rows('Token endpoint errors')
    const statuses = Object.keys(exchangeDescription.responses).filter((status) => status !== '200')
    expect(sorted(table.map(([status = '']) => status))).toEqual(sorted(statuses))
    expect(sorted(table.flatMap(([, error]) => namesIn(error)))).toEqual(sorted(reasonNames.map(oauthErrorOf)))
  })

  test('lists every parameter of a preset body, and whether it is stored', () => {
    const table = rows('Preset parameters')
    const named = (answer: string) => table.filter(([, stored]) => stored === answer).flatMap(([cell]) => namesIn(cell))
    expect(named('yes').toSorted()).toEqual(configKeys.toSorted())
    expect(named('no').toSorted()).toEqual(Object.keys(passingParameters).toSorted())
  })

  test('lists every variable of a condition with its type', () => {
    const listed = rows('Condition').map(([name, type]) => [
      namesIn(name).join(),
      type?.replace('(', '<').replace(')', '>'),
    ])
    expect(Object.fromEntries(listed)).toEqual(conditionVariables)
  })

  test('gives the limits that the service has', () => {
    const numbers = Object.fromEntries(
      rows('Limits').map(([limit = '', value = '']) => [
        limit.replaceAll('`', ''),
        Number(value.replaceAll(/\D/g, '')),
      ]),
    )
    expect(numbers).toEqual({
      'access token lifetime': limits.accessTokenLifetimeSecondsMax,
      'time for a request body': limits.requestBodyMillisecondsMax / 1_000,
      'exchange body': limits.exchangeBodyBytesLimit,
      subject_token: limits.subjectTokenBytesMax,
      condition: limits.conditionCharactersMax,
      'sub, each aud value, each scopes entry': limits.claimCharactersMax,
      scopes: limits.scopesEntriesMax,
      metadata: limits.metadataPairsMax,
      'metadata key': limits.metadataKeyCharactersMax,
      'metadata value': limits.metadataValueCharactersMax,
      stop: limits.stopSequencesMax,
      top_logprobs: limits.topLogprobsMax,
      session_id: limits.sessionIdCharactersMax,
      models: limits.fallbackModelsMax,
      'model name': limits.modelCharactersMax,
      slug: limits.presetSlugCharactersMax,
      'preset body': limits.presetBodyBytesMax,
      'preset body depth': limits.presetBodyDepthMax,
      'preset version': limits.presetConfigCharactersMax,
      'presets in a workspace': limits.presetsMax,
      'inference body depth': limits.jsonLevelsMax,
      'inference body values': limits.jsonValuesMax,
    })
  })
})
