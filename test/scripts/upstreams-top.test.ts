// What `latchkey upstreams top` draws.
import { describe, expect, test } from 'bun:test'
import { drawQueue } from '../../scripts/upstreams-top.ts'

type Queue = Parameters<typeof drawQueue>[0]
const at = '2026-11-26T20:15:42.000Z'
const server = (fields: Partial<Queue['upstreams'][number]> = {}): Queue['upstreams'][number] => ({
  ...{ name: 'gpu-1', running: 3, max_running: 16, waiting: 0, rests: [], probe: null },
  ...{ failing: null, tokens_per_second: 812.4 },
  ...fields,
})
const rest = (model: string | null) => ({ model, since: at, until: '2026-11-26T20:16:00.000Z' })
/** The cells of each line. */
const linesOf = (queue: Queue) =>
  drawQueue(queue)
    .split('\n')
    .map((line) => line.split(/ {2,}/))

describe('the live view', () => {
  test('shows the servers with what runs, waits and rests, then the keys', () => {
    const upstreams = [
      server(),
      server({ name: 'gpu-2', max_running: null, running: 0, rests: [rest(null), rest('big')], tokens_per_second: 0 }),
    ]
    const keys = [{ organization: 'default', name: 'ci', running: 3, waiting: 11, tokens_per_second: 812.4 }]
    expect(linesOf({ at, upstreams, keys })).toEqual([
      ['20:15:42 UTC'],
      [''],
      ['UPSTREAM', 'RUNNING', 'WAITING', 'TOKENS/S', 'RESTS', 'PROBE'],
      ['gpu-1', '3 of 16', '0', '812.4', '', '-'].filter((cell) => cell !== ''),
      ['gpu-2', '0', '0', '0', 'until 20:16:00, big until 20:16:00', '-'],
      [''],
      ['KEY', 'ORGANIZATION', 'RUNNING', 'WAITING', 'TOKENS/S'],
      ['ci', 'default', '3', '11', '812.4'],
    ])
  })

  test('shows how the last probe of a server ended', () => {
    const ok = { ok: true, at, milliseconds: 4, problem: null }
    const upstreams = [server({ probe: ok }), server({ probe: { ...ok, ok: false, problem: 'it responds with 503' } })]
    expect(linesOf({ at, upstreams, keys: [] }).map((line) => line.at(-1))).toEqual([
      ...['20:15:42 UTC', '', 'PROBE', 'responds in 4 ms', 'fails: it responds with 503', '', 'No requests'],
    ])
  })

  test('says how to add the first server', () => {
    expect(drawQueue({ at, upstreams: [], keys: [] })).toContain('latchkey upstreams add')
  })

  test('lets no name of a key draw anything else', () => {
    const keys = [{ organization: 'o', name: 'a\u001b[2J\nb', running: 1, waiting: 0, tokens_per_second: 0 }]
    const drawn = drawQueue({ at, upstreams: [server()], keys })
    expect(drawn).not.toContain('\u001b')
    expect(drawn.split('\n')).toHaveLength(7)
  })
})
