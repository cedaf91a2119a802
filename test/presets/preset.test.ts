// What a preset keeps of a chat body: the config and, apart from it, the system prompt (reference: Preset parameters).
import { describe, expect, test } from 'bun:test'
import { Fault } from '../../src/fault.ts'
import { readPreset } from '../../src/presets/preset.ts'

const user = { role: 'user', content: 'Hi' }
const promptOf = (...messages: unknown[]) => readPreset('chat', { messages }).systemPrompt

describe('the config', () => {
  test('is what overlaps with a preset, as it was sent', () => {
    const body = {
      messages: [{ role: 'system', content: 'You are a helpful assistant.' }, user],
      model: 'openai/gpt-4o',
      temperature: 0.7,
      max_tokens: null,
      stop: 'END',
      stream: true,
      metadata: { a: 'b' },
      user: 'ann',
      unknown: 1,
      reasoning: { effort: null },
    }
    expect(readPreset('chat', body)).toEqual({
      config: { model: 'openai/gpt-4o', temperature: 0.7, stop: 'END', reasoning: { effort: null } },
      systemPrompt: 'You are a helpful assistant.',
    })
  })

  test('has the proper name of a service tier', () => {
    const tierOf = (service_tier: string) => readPreset('chat', { messages: [user], service_tier }).config.service_tier
    expect(['fast', 'priority', 'flex'].map(tierOf)).toEqual(['priority', 'priority', 'flex'])
  })

  test('takes false, zero, empty text and empty lists for what they are', () => {
    const fields = { logprobs: false, temperature: 0, stop: '', tools: [], logit_bias: {} }
    expect(readPreset('chat', { messages: [user], ...fields }).config).toEqual(fields)
  })
})

describe('the system prompt', () => {
  test('is null when no message instructs', () => expect(promptOf(user)).toBe(null))
  test('is null when the instruction says nothing', () => {
    expect(promptOf({ role: 'system', content: '' }, { role: 'developer', content: [] }, user)).toBe(null)
  })

  test('is the text of every system and developer message in order, joined by a blank line', () => {
    const parts = [
      { type: 'text', text: 'Two' },
      { type: 'text', text: 'three' },
    ]
    expect(
      promptOf(
        { role: 'system', content: 'One' },
        user,
        { role: 'developer', content: parts },
        { role: 'system', content: 'four' },
      ),
    ).toBe('One\n\nTwo\n\nthree\n\nfour')
  })

  test('keeps its white space', () => expect(promptOf({ role: 'system', content: ' a \n' })).toBe(' a \n'))

  test('that the database could not keep is refused', () => {
    const refusal = 'messages: must not have U+0000 or lone surrogates in the system prompt'
    expect(() => promptOf({ role: 'system', content: 'a\0b' })).toThrow(refusal)
    expect(() => promptOf({ role: 'system', content: 'a\ud800' })).toThrow(refusal)
    expect(promptOf({ role: 'system', content: 'a😀' }, { role: 'user', content: 'a\0' })).toBe('a😀')
  })
})

describe('a refusal', () => {
  test('is one fault with all problems', () => {
    let thrown: unknown
    try {
      readPreset('chat', { temperature: 3, metadata: { trace_id: 'a'.repeat(513) } })
    } catch (error) {
      thrown = error
    }
    expect(thrown).toBeInstanceOf(Fault)
    expect(thrown).toMatchObject({
      code: 'invalid',
      message:
        'temperature: must be a number from 0 to 2; messages: is required; metadata.trace_id: must be at most 512 characters',
    })
  })
})
