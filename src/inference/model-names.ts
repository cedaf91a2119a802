// The models that a body names, wherever an upstream may act on them: gateways take them for fallbacks, routing and tools. What the caller
// talks about with the model (contents, schemas, documents, metadata) is data, and is not looked at.
import { Fault } from '../fault.ts'
import { giveWayAfter, hasMemberTwice } from '../http/body.ts'
import { checkModels, isLimited } from '../keys/admission.ts'
import type { Principal } from '../keys/bearer.ts'
import { modelCharactersMax, modelNamesMax } from '../limits.ts'
import { configKeys } from '../presets/chat-body.ts'
import { type Fields, isLonger, isObject } from '../presets/check.ts'
import type { GivenBody } from './inference-request.ts'

/** Where data is, by the names of members, through lists. Everything else may be an instruction to the upstream. */
type Places = { readonly [name: string]: Places | 'data' }

const call: Places = { function: { arguments: 'data' }, arguments: 'data' }
const format: Places = { schema: 'data', json_schema: { schema: 'data' } }
const tool: Places = { function: { parameters: 'data' }, input_schema: 'data', input_examples: 'data' }
/** The parameters of any other tool are its settings, a model among them. */
const functionTool: Places = { ...tool, parameters: 'data' }
const body: Places = {
  messages: { content: 'data', tool_calls: call, function_call: call },
  input: { content: 'data', output: 'data', results: 'data', arguments: 'data' },
  prompt: { variables: 'data' },
  documents: 'data',
  functions: functionTool,
  response_format: format,
  text: { format },
  output_config: { format },
  // vLLM and llama.cpp
  guided_json: 'data',
  structured_outputs: { json: 'data' },
  json_schema: 'data',
  metadata: 'data',
  trace: 'data',
}

/** What goes with one model in a list of fallbacks; any other name there is a model's, as in `{"small": ["big"]}`. */
const options = new Set<string>([...configKeys, 'thinking', 'output_config', 'speed'])

/** Nobody's parameter is longer, so that what a longer name says is not looked at. */
const nameCharactersMax = 128
const plainName = /^[a-z0-9_]*$/

/**
 * Holds every model that a body names to the bounds of the caller. A caller without bounds pays nothing for it.
 * @throws Fault `forbidden` as `checkModels`, and `invalid` for too many names, or a member that is there twice: the upstream may take the other
 */
export async function checkNamedModels(
  principal: Principal,
  { sent, fields }: GivenBody,
  models: readonly string[],
): Promise<void> {
  if (!isLimited(principal, 'allowedModels')) return
  // That none is asked for is told whatever else is named.
  checkModels(principal, models)
  await giveWayAfter(sent.bytes)
  if (hasMemberTwice(sent))
    throw new Fault('invalid', 'The body names a member of one of its objects twice', { reason: 'body_member_twice' })
  await giveWayAfter(sent.bytes)
  checkModels(principal, findModelNames(fields))
  await giveWayAfter(sent.bytes)
}

/** Each text under a member that says model or fallback, once. @throws Fault `invalid` for too many, or one that is too long to be a name */
export function findModelNames(fields: Fields): string[] {
  const names = new Set<string>()
  let count = 0
  const note = (name: string) => {
    count += 1
    if (count > modelNamesMax)
      throw new Fault(
        'invalid',
        `The body names models at more places than a key with bounds may: at most ${modelNamesMax}`,
      )
    if (isLonger(name, modelCharactersMax))
      throw new Fault('invalid', `A model has at most ${modelCharactersMax} characters`)
    names.add(name)
  }
  search(fields, body, note)
  return [...names]
}

type Note = (name: string) => void

function search(value: object, places: Places, note: Note): void {
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === 'object' && item !== null) search(item, places, note)
    return
  }
  const fields = value as Fields
  const here = places === tool && fields.type === 'function' ? functionTool : places
  for (const name of Object.keys(fields)) {
    const member = fields[name]
    const isText = typeof member === 'string'
    if (!isText && (typeof member !== 'object' || member === null)) continue
    const place = Object.hasOwn(here, name) ? here[name] : undefined
    if (place === 'data') continue
    if (saysModel(name)) noteAll(member, note)
    else if (!isText) search(member, name === 'tools' ? tool : (place ?? {}), note)
  }
}

/** Each text within, and each name that is not known to be an option's. */
function noteAll(value: unknown, note: Note, isOption = false): void {
  if (typeof value === 'string') note(value)
  else if (Array.isArray(value)) for (const item of value) noteAll(item, note, isOption)
  else if (isObject(value))
    for (const name of Object.keys(value)) {
      const isKnown = isOption || options.has(name)
      if (!isKnown && !saysModel(name)) note(name)
      noteAll(value[name], note, isKnown)
    }
}

/** In any case and script form, with whatever between the letters. */
function saysModel(name: string): boolean {
  if (name.length > nameCharactersMax) return true
  const folded = plainName.test(name)
    ? name.replaceAll('_', '')
    : name
        .normalize('NFKD')
        .toUpperCase()
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}]/gu, '')
  return folded.includes('model') || folded.includes('fallback')
}
