// From a body of any of the three dialects to what a preset version holds: its config and its system prompt.
import { Fault } from '../fault.ts'
import { chatBodyProblems, chatConfig, chatSystemTexts } from './chat-body.ts'
import { describeProblems, type Fields, type Problem } from './check.ts'
import { messagesBodyProblems, messagesConfig, messagesSystemTexts } from './messages-body.ts'
import { responsesBodyProblems, responsesConfig, responsesSystemTexts } from './responses-body.ts'

/** Which body it is: `/chat/completions`, `/messages` (Anthropic) or `/responses` (OpenAI). */
export type Dialect = 'chat' | 'messages' | 'responses'

/** What one version of a preset says (interface §2.7). `config` is in chat-completions terms, whatever the dialect it came from. */
export type PresetContent = { config: Fields; systemPrompt: string | null }

type Reading = {
  problems: (body: Fields) => Problem[]
  config: (body: Fields) => Fields
  systemTexts: (body: Fields) => string[]
  /** Where the system prompt is told. */
  systemField: string
}

const readings: Record<Dialect, Reading> = {
  chat: { problems: chatBodyProblems, config: chatConfig, systemTexts: chatSystemTexts, systemField: 'messages' },
  messages: {
    problems: messagesBodyProblems,
    config: messagesConfig,
    systemTexts: messagesSystemTexts,
    systemField: 'system',
  },
  responses: {
    problems: responsesBodyProblems,
    config: responsesConfig,
    systemTexts: responsesSystemTexts,
    systemField: 'instructions',
  },
}

/**
 * What a preset made of this body holds: the kept fields that are not null, and the system prompt apart from them (decisions §7).
 * The values are those of the body, not copies.
 * @throws Fault `invalid`, naming each problem as path and rule, ten at most: `metadata.trace_id: must be at most 512 characters`
 */
export function readPreset(dialect: Dialect, body: Fields): PresetContent {
  const { problems, config, systemTexts, systemField } = readings[dialect]
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

function joinTexts(texts: string[]): string | null {
  const told = texts.filter((text) => text !== '')
  return told.length === 0 ? null : told.join('\n\n')
}
