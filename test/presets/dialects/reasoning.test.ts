// How much to think is said in several ways; a request that says it in one of them wins over a preset that says it in another.
import { describe, expect, test } from 'bun:test'
import { applyPreset } from '../../../src/presets/apply.ts'
import type { JsonTarget as Target } from '../../../src/values/inference-paths.ts'

type Fields = Record<string, unknown>

const apply = (target: Target, config: Fields, request: Fields) =>
  applyPreset(target, { config: { model: 'own', ...config }, systemPrompt: null }, { preset: 's', ...request })

describe('how much to think', () => {
  const rows: [target: Target, config: Fields, request: Fields, reasoningFields: Fields][] = [
    ['chat', { reasoning_effort: 'high' }, { reasoning: { enabled: false } }, { reasoning: { enabled: false } }],
    ['chat', { reasoning_effort: 'high' }, { reasoning: { max_tokens: 9 } }, { reasoning: { max_tokens: 9 } }],
    // `enabled: true` leaves the effort open, unless the effort is `none`.
    [
      'chat',
      { reasoning_effort: 'high' },
      { reasoning: { enabled: true } },
      { reasoning: { enabled: true }, reasoning_effort: 'high' },
    ],
    ['chat', { reasoning_effort: 'none' }, { reasoning: { enabled: true } }, { reasoning: { enabled: true } }],
    [
      'chat',
      { reasoning_effort: 'high' },
      { reasoning: { enabled: null, max_tokens: null } },
      { reasoning: { enabled: null, max_tokens: null }, reasoning_effort: 'high' },
    ],
    ['chat', { reasoning: { max_tokens: 9 } }, { reasoning_effort: 'low' }, { reasoning_effort: 'low' }],
    ['chat', { reasoning: { enabled: false } }, { reasoning_effort: 'low' }, { reasoning_effort: 'low' }],
    ['chat', { reasoning: { enabled: true } }, { reasoning_effort: 'none' }, { reasoning_effort: 'none' }],
    [
      'chat',
      { reasoning: { enabled: true, max_tokens: 9, summary: 'auto' } },
      { reasoning_effort: 'low' },
      { reasoning: { summary: 'auto' }, reasoning_effort: 'low' },
    ],
    ['responses', { reasoning: { max_tokens: 9 } }, { reasoning_effort: 'low' }, { reasoning_effort: 'low' }],
    [
      'responses',
      { reasoning: { enabled: false }, reasoning_effort: 'none' },
      { reasoning: { effort: 'low' } },
      { reasoning: { effort: 'low' } },
    ],
    ['messages', { reasoning_effort: 'high' }, { thinking: { type: 'disabled' } }, { thinking: { type: 'disabled' } }],
    [
      'messages',
      { reasoning: { effort: 'high' }, response_format: { type: 'json_schema', json_schema: { schema: {} } } },
      { thinking: { type: 'enabled', budget_tokens: 9 } },
      {
        thinking: { type: 'enabled', budget_tokens: 9 },
        output_config: { format: { type: 'json_schema', schema: {} } },
      },
    ],
    [
      'messages',
      { reasoning: { effort: 'high' } },
      { thinking: { type: 'adaptive' } },
      { thinking: { type: 'adaptive' }, output_config: { effort: 'high' } },
    ],
    [
      'messages',
      { reasoning_effort: 'none' },
      { output_config: { effort: 'low' } },
      { output_config: { effort: 'low' } },
    ],
    [
      'messages',
      { reasoning: { max_tokens: 9 } },
      { output_config: { effort: 'low' } },
      { output_config: { effort: 'low' } },
    ],
    [
      'messages',
      { reasoning: { enabled: true } },
      { output_config: { effort: 'low' } },
      { thinking: { type: 'adaptive' }, output_config: { effort: 'low' } },
    ],
    [
      'messages',
      { reasoning: { max_tokens: 9 } },
      { output_config: { effort: null } },
      { thinking: { type: 'enabled', budget_tokens: 9 }, output_config: { effort: null } },
    ],
  ]
  for (const [target, config, request, reasoningFields] of rows)
    test(`is what ${target} with ${JSON.stringify(request)} says, over ${JSON.stringify(config)}`, () => {
      expect(apply(target, config, request)).toEqual({ model: 'own', ...reasoningFields })
    })
})
