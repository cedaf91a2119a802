// What a request used in addition to tokens: characters to speak, images, seconds of audio.
import type { Unit } from '../values/inference-paths.ts'
import type { Call } from './call.ts'
import type { Inspection } from './usage.ts'

/** More images in one request are a mistake. */
const imagesMax = 1_000

const amounts: Record<Unit, (call: Call, inspected: Inspection) => number | undefined> = {
  character: ({ fields: { input } }) => (typeof input === 'string' ? countCodePoints(input) : undefined),
  image: ({ fields: { n } }) => {
    const images = n === undefined || n === null || n === '' ? 1 : Number(n)
    return Number.isInteger(images) && images > 0 && images <= imagesMax ? images : undefined
  },
  audio_second: (_call, { audioSeconds }) => audioSeconds,
}

/** The amount, in the unit of the path. Undefined when it is unknown, or the upstream has refused the request. */
export function unitsOf(call: Call, status: number, inspected: Inspection): number | undefined {
  const { unit } = call.path
  return unit === undefined || status >= 300 ? undefined : amounts[unit](call, inspected)
}

function countCodePoints(text: string): number {
  let pairs = 0
  for (let at = 0; at < text.length; at++) {
    const isPair = (text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00
    if (isPair) pairs += 1
  }
  return text.length - pairs
}
