// The models that a body names, wherever an upstream may act on them: gateways read them for fallbacks, routing and
// tools. The content of the conversation (messages, schemas, documents, metadata) is data, and is not searched.
import { Fault } from '../fault.ts'
import { giveWayAfter, hasMemberTwice, memberTwice } from '../http/body.ts'
import { checkModels, isLimited } from '../keys/admission.ts'
import type { Principal } from '../keys/bearer.ts'
import { modelCharactersMax, modelNamesMax } from '../limits.ts'
import type { Fields } from '../presets/schema/fields.ts'
import { configKeys } from '../presets/schema/parameters.ts'
import { createPause, giveWay } from '../scheduling/give-way.ts'
import { isLonger } from '../values/characters.ts'
import type { Call } from './call.ts'
import { holdsJson } from './form-body.ts'
import { stepsForName, whatNameSays } from './member-names.ts'

/** Where data is, by the names of members, across lists. Everything else may be an instruction to the upstream. */
type Places = { readonly [name: string]: Places | 'data' }

const toolCall: Places = { function: { arguments: 'data' }, arguments: 'data' }
const format: Places = { schema: 'data', json_schema: { schema: 'data' } }
const tool: Places = { input_schema: 'data', input_examples: 'data' }
/** The parameters of any other tool are settings, which may include a model. */
const untypedTool: Places = { ...tool, function: { parameters: 'data' } }
const functionTool: Places = { ...untypedTool, parameters: 'data' }
/** Where only a member with the word model chooses one: an adapter or engine of a tool is something else. */
const elsewhere: Places = {}
const anywhere: Places = { tools: tool, plugins: elsewhere }
/** Members that an upstream reads as its own settings. */
const settings: Places = { documents: elsewhere, metadata: elsewhere, trace: elsewhere }
const body: Places = {
  messages: { content: 'data', tool_calls: toolCall, function_call: toolCall },
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
  chat_template_kwargs: elsewhere,
}

/** Options of one model in a list of fallbacks; any other name there is a model, as in `{"small": ["big"]}`. */
const options = new Set<string>([...configKeys, 'thinking', 'output_config', 'speed'])

/**
 * Checks every model that a body names against the limits of the caller. Undefined for a caller without limits.
 * @throws Fault `forbidden` as `checkModels`; `invalid` for too many names, or for a member that is named twice:
 * upstreams may read either
 */
export function checkNamedModels(principal: Principal, call: Call): Promise<void> | undefined {
  return call.path.body === 'none' || !isLimited(principal, 'models') ? undefined : checkAll(principal, call)
}

async function checkAll(principal: Principal, { json, fields, models }: Call): Promise<void> {
  // First, so that a request that names no model is refused for that.
  checkModels(principal, models)
  if (json === undefined) {
    rejectJsonIn(fields)
    return checkModels(principal, await findModelNames(fields))
  }
  await giveWayAfter(json.bytes)
  if (await hasMemberTwice(json)) throw await memberTwice(json.bytes, 'anywhere')
  await giveWayAfter(json.bytes)
  checkModels(principal, await findModelNames(fields))
  await giveWayAfter(json.bytes)
}

/** Some upstreams parse fields of a form, each in its own way. The prompt is text to all of them. */
function rejectJsonIn(fields: Fields): void {
  for (const [name, value] of Object.entries(fields)) {
    if (name === 'prompt' || ![value].flat().some((text) => holdsJson(String(text)))) continue
    const why = 'a caller that is limited to models may not send JSON in a form'
    throw new Fault('invalid', `The field ${JSON.stringify(name)} holds JSON: ${why}`, { reason: 'models_hidden' })
  }
}

/**
 * How to read a value: by the places in it; as names of models (strings and member names, except options); or as
 * strings that are such names.
 */
type Role = Places | 'names' | 'texts'
type Part = { value: string | object; role: Role }

/**
 * Every distinct string under a member that names or chooses a model. Yields to other requests within a large body.
 * @throws Fault `invalid` for too many names, or one that is too long
 */
export async function findModelNames(fields: Fields): Promise<string[]> {
  const names = new Set<string>()
  const pause = createPause()
  let count = 0
  const waiting: Part[] = [{ value: fields, role: body }]
  for (let part = waiting.pop(); part !== undefined; part = waiting.pop()) {
    const { value } = part
    if (typeof value === 'string') {
      count += 1
      checkName(value, count)
      names.add(value)
      continue
    }
    // In reverse, so that the first is taken next.
    const keys = Array.isArray(value) ? undefined : Object.keys(value)
    for (let at = (keys ?? (value as unknown[])).length - 1; at >= 0; at--) {
      const steps = keys === undefined ? addItem(waiting, part, at) : addMember(waiting, part, keys[at] ?? '')
      if (pause.isDueAfter(steps)) await giveWay()
    }
    if (pause.isDueAfter(1)) await giveWay()
  }
  return [...names]
}

function checkName(name: string, count: number): void {
  if (count > modelNamesMax)
    throw new Fault(
      'invalid',
      `The body names models in too many places: a caller that is limited to models may use at most ${modelNamesMax}`,
      { reason: 'models_too_many' },
    )
  if (isLonger(name, modelCharactersMax))
    throw new Fault('invalid', `A model has at most ${modelCharactersMax} characters: shorten the name`, {
      reason: 'body_refused',
    })
}

function isPart(value: unknown): value is string | object {
  return typeof value === 'string' || (typeof value === 'object' && value !== null)
}

/** Returns the steps taken. */
function addItem(waiting: Part[], { value: list, role }: Part, at: number): number {
  const value = (list as unknown[])[at]
  if (isPart(value) && (typeof value !== 'string' || typeof role === 'string')) waiting.push({ value, role })
  return 1
}

/** Returns the steps taken. */
function addMember(waiting: Part[], { value: fields, role }: Part, name: string): number {
  const value = (fields as Fields)[name]
  if (role === 'names') {
    const isOption = options.has(name)
    if (isPart(value)) waiting.push({ value, role: isOption ? 'texts' : 'names' })
    if (!isOption && whatNameSays(name) !== 'model') waiting.push({ value: name, role: 'texts' })
    return stepsForName(name)
  }
  if (!isPart(value)) return 1
  if (role === 'texts') waiting.push({ value, role })
  else {
    const inner = roleOf(name, fields as Fields, role)
    if (inner !== 'data' && (typeof value !== 'string' || typeof inner === 'string'))
      waiting.push({ value, role: inner })
  }
  return stepsForName(name)
}

function roleOf(name: string, fields: Fields, places: Places): Role | 'data' {
  const here = places === tool ? toolPlaces(fields) : places
  const place = Object.hasOwn(here, name) ? here[name] : undefined
  if (place === 'data') return 'data'
  const isOfSettings = here === body || here === settings
  const says = whatNameSays(name)
  if (says === 'model') return 'names'
  if (says === 'chooser' && isOfSettings) return 'texts'
  if (Object.hasOwn(anywhere, name)) return anywhere[name] ?? elsewhere
  return place ?? (isOfSettings ? settings : elsewhere)
}

/** Only the parameters of a function are filled in by the model. */
function toolPlaces({ type }: Fields): Places {
  if (type === 'function') return functionTool
  return type === undefined ? untypedTool : tool
}
