// Counts the content in the events of a stream, from which follows the least number of tokens that were generated. It
// searches the text of events, which most streams would otherwise not parse.

/** An event that carries content; what ends a piece of content repeats it. */
const contentEvent = /"choices"|delta"/
const contentStart =
  /"(?:content|text|delta|reasoning_content|reasoning|thinking|partial_json|arguments|refusal)"\s*:\s*"(?!")/g
const betweenEvents = /(?:\r\n|\n|\r(?!\n)){2}/
/** Of ordinary text. */
const bytesPerToken = 4

/** `mark` is what content began with last, as `"content":"`: searching for that is faster. */
export type SeenContent = { events: number; bytes: number; mark: string }

/** Adds what is in whole events, given as latin1, one character per byte. */
export function addContent(seen: SeenContent, events: string): void {
  if (seen.mark !== '' && addMarked(seen, events)) return
  for (const event of events.split(betweenEvents)) if (contentEvent.test(event)) addLongest(seen, event)
}

/** Whether the mark was found. */
function addMarked(seen: SeenContent, events: string): boolean {
  const { mark } = seen
  const first = events.indexOf(mark)
  for (let at = first; at >= 0; at = events.indexOf(mark, at)) {
    const start = at + mark.length
    at = endOfText(events, start)
    add(seen, bytesBetween(events, start, at))
  }
  return first >= 0
}

/** The longest piece of an event: some upstreams write one piece under two names. */
function addLongest(seen: SeenContent, event: string): void {
  let most = 0
  contentStart.lastIndex = 0
  for (let found = contentStart.exec(event); found !== null; found = contentStart.exec(event)) {
    const start = contentStart.lastIndex
    const end = endOfText(event, start)
    const bytes = bytesBetween(event, start, end)
    if (bytes > most) seen.mark = found[0]
    most = Math.max(most, bytes)
    contentStart.lastIndex = end
  }
  add(seen, most)
}

function add(seen: SeenContent, bytes: number): void {
  if (bytes === 0) return
  seen.events += 1
  seen.bytes += bytes
}

/** The least number of tokens: an event holds at least one. */
export function tokensOf({ events, bytes }: SeenContent): number {
  return Math.max(events, Math.floor(bytes / bytesPerToken))
}

function endOfText(event: string, start: number): number {
  for (let quote = event.indexOf('"', start); quote >= 0; quote = event.indexOf('"', quote + 1)) {
    let escapes = quote
    while (escapes > start && event[escapes - 1] === '\\') escapes -= 1
    if ((quote - escapes) % 2 === 0) return quote
  }
  return event.length
}

/** An escape takes up to six bytes for one. */
function bytesBetween(event: string, start: number, end: number): number {
  const text = event.slice(start, end)
  if (!text.includes('\\')) return text.length
  try {
    return Buffer.byteLength(JSON.parse(`"${Buffer.from(text, 'latin1').toString()}"`) as string)
  } catch {
    return text.length
  }
}
