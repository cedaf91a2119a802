// From a body of any of the three dialects to what a preset version holds: its config and its system prompt.
import { Fault } from '../fault.ts'
import { presetConfigCharactersMax } from '../limits.ts'
import { chatBody, chatBodyProblems, chatConfig, chatSystemTexts } from './dialects/from-chat.ts'
import { messagesBody, messagesBodyProblems, messagesConfig, messagesSystemTexts } from './dialects/from-messages.ts'
import {
  responsesBody,
  responsesBodyProblems,
  responsesConfig,
  responsesSystemTexts,
} from './dialects/from-responses.ts'
import { type Fields, isObject } from './schema/fields.ts'
import { type Check, describeProblems, type Problem } from './schema/validation.ts'

/** Which body it is: `/chat/completions`, `/messages` (Anthropic) or `/responses` (OpenAI). */
export const dialects = ['chat', 'messages', 'responses'] as const
export type Dialect = (typeof dialects)[number]

/** What one version of a preset says (reference: Preset versions). `config` is in chat-completions terms, whatever the dialect it came from. */
export type PresetContent = { config: Fields; systemPrompt: string | null }

type Reading = {
  name: string
  body: Check
  problems: (body: Fields) => Problem[]
  config: (body: Fields) => Fields
  systemTexts: (body: Fields) => string[]
  /** Where the system prompt is told. */
  systemField: string
}

export const readings: Record<Dialect, Reading> = {
  chat: {
    name: 'chat completions',
    body: chatBody,
    problems: chatBodyProblems,
    config: chatConfig,
    systemTexts: chatSystemTexts,
    systemField: 'messages',
  },
  messages: {
    name: 'messages',
    body: messagesBody,
    problems: messagesBodyProblems,
    config: messagesConfig,
    systemTexts: messagesSystemTexts,
    systemField: 'system',
  },
  responses: {
    name: 'responses',
    body: responsesBody,
    problems: responsesBodyProblems,
    config: responsesConfig,
    systemTexts: responsesSystemTexts,
    systemField: 'instructions',
  },
}

/**
 * What a preset made of this body holds: the kept fields that are not null, and the system prompt apart from them (reference: Preset parameters).
 * The values are those of the body, not copies.
 * @throws Fault `invalid` when the body has no members, or naming each problem as path and rule, ten at most: `metadata.trace_id: must be at most 512 characters`
 */
export function readPreset(dialect: Dialect, body: Fields): PresetContent {
  const { name, problems, config, systemTexts, systemField } = readings[dialect]
  if (Object.keys(body).length === 0)
    throw new Fault('invalid', `The body is empty: send the JSON of a ${name} request`)
  const found = problems(body)
  if (found.length > 0) throw new Fault('invalid', describeProblems(found))
  const systemPrompt = joinTexts(systemTexts(body))
  // The database keeps it as text, and would end it at the first NUL and replace half a character.
  if (systemPrompt !== null && (systemPrompt.includes('\0') || !systemPrompt.isWellFormed()))
    throw new Fault(
      'invalid',
      `${systemField}: must have no U+0000 and no half of a surrogate pair in its system prompt`,
    )
  return { config: config(body), systemPrompt }
}

/** The settings as they are stored. @throws Fault `invalid` when they and the system prompt are too long together */
export function encodeConfig({ config, systemPrompt }: PresetContent): string {
  const text = JSON.stringify(config)
  const length = text.length + (systemPrompt?.length ?? 0)
  if (length <= presetConfigCharactersMax) return text
  throw new Fault(
    'invalid',
    `A preset keeps at most ${presetConfigCharactersMax} characters of settings and system prompt, and these are ${length}`,
  )
}

/**
 * The same from settings and system prompt as they were told: `{"config": {…}, "system_prompt": "…"}`, as JSON.
 * @throws Fault `invalid`, which names the preset, also for a setting that a preset does not keep, and for too many
 */
export function readPresetContent(slug: string, text: string): PresetContent {
  const { config, system_prompt: systemPrompt = null, ...others } = parseContent(slug, text)
  const wrong = (what: string) => new Fault('invalid', `The preset ${JSON.stringify(slug)}: ${what}`)
  if (Object.keys(others).length > 0) throw wrong(`${Object.keys(others)[0]} must be removed`)
  if (!isObject(config)) throw wrong('config must be an object')
  if (systemPrompt !== null && (typeof systemPrompt !== 'string' || systemPrompt === ''))
    throw wrong('system_prompt must be text or null')
  // The conversation stands for the one that it was made of.
  const opening = systemPrompt === null ? { role: 'user', content: '-' } : { role: 'system', content: systemPrompt }
  let content: PresetContent
  try {
    content = readPreset('chat', { ...config, messages: [opening] })
    encodeConfig(content)
  } catch (error) {
    throw error instanceof Fault ? wrong(error.message) : error
  }
  const lost = Object.keys(config).find((name) => config[name] !== null && !Object.hasOwn(content.config, name))
  if (lost !== undefined) throw wrong(`config.${lost} is no setting that a preset keeps`)
  return content
}

function parseContent(slug: string, text: string): Fields {
  try {
    const content: unknown = JSON.parse(text)
    if (isObject(content)) return content
  } catch {
    // Told below, as for every other value that is not an object.
  }
  throw new Fault('invalid', `The preset ${JSON.stringify(slug)} must be an object`)
}

function joinTexts(texts: string[]): string | null {
  const told = texts.filter((text) => text !== '')
  return told.length === 0 ? null : told.join('\n\n')
}
