// Whether the name of a member in a body refers to a model, however it is spelled.

/** No known parameter is longer. A longer name is not examined and counts as naming a model. */
const plainCharactersMax = 128
const otherCharactersMax = 64
const plainName = /^[a-z0-9_]*$/

/** Members that choose a model, an adapter, or a prompt with a model, without the word model. */
const choosers = new Set(
  // LiteLLM, Azure and the first OpenAI API
  ['deployment', 'deployment_id', 'prompt_id', 'engine']
    // Text Generation Inference, LoRAX, SGLang, vLLM and llama.cpp
    .concat(['adapter', 'adapters', 'adapter_id', 'merged_adapters', 'lora', 'lora_path', 'lora_request'])
    .map((name) => name.replaceAll('_', '')),
)

export type NameMeaning = 'model' | 'chooser' | 'other'

/** What a name refers to, in any case and script form, with any separators between the letters. */
export function whatNameSays(name: string): NameMeaning {
  const isPlain = plainName.test(name)
  if (name.length > (isPlain ? plainCharactersMax : otherCharactersMax)) return 'model'
  const folded = isPlain ? name.replaceAll('_', '') : fold(name)
  if (folded.includes('model') || folded.includes('fallback')) return 'model'
  return choosers.has(folded) ? 'chooser' : 'other'
}

/** The cost of `whatNameSays`, in steps of `createPause`. */
export function stepsForName(name: string): number {
  return 1 + Math.min(name.length, otherCharactersMax)
}

/**
 * The letters a to z and digits of a name, with `?` for others. One character at a time, since some expand to 18, and a
 * lookup is a hundred times as fast.
 */
function fold(name: string): string {
  let folded = ''
  let last = ''
  for (let at = 0; at < name.length; at++) {
    const codePoint = name.codePointAt(at) ?? 0
    if (codePoint > 0xffff) at += 1
    const one = foldOne(codePoint)
    if (one === '' || (one === '?' && last === '?')) continue
    folded += one
    last = one
  }
  return folded
}

/** By code point: the index of its folded form in `forms`; 0 until it is first needed. */
const formOf = new Uint16Array(0x110000)
const forms = ['']
const positions = new Map<string, number>()

function foldOne(codePoint: number): string {
  const known = formOf[codePoint] ?? 0
  if (known > 0) return forms[known] ?? ''
  const form = String.fromCodePoint(codePoint)
    .normalize('NFKD')
    .toUpperCase()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]/gu, '')
    .replaceAll(/[^a-z0-9]+/g, '?')
  const position = positions.get(form) ?? forms.push(form) - 1
  positions.set(form, position)
  formOf[codePoint] = position
  return form
}
