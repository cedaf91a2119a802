// Log lines under pressure: a stalled reader costs lines, which are counted, but no time; a clean end loses none.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { closeSync, constants, createReadStream, openSync, readFileSync, readSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { createFileWriter, createLineSink, type WriteText } from '../../src/observe/line-sink.ts'
import { compiledProgram } from '../support/compiled-program.ts'
import { type Installation, install } from '../support/installation.ts'
import { temporaryFolder } from '../support/latchkey.ts'
import { until } from '../support/until.ts'

/** A target whose writes end when the test says so. */
function createSlowTarget() {
  const written: string[] = []
  const ends: (() => void)[] = []
  const write: WriteText = (text, done) => {
    ends.push(() => {
      written.push(text)
      done()
    })
  }
  const goOn = () => {
    for (const end of ends.splice(0)) end()
  }
  return { write, written, goOn }
}

describe('a sink', () => {
  const line = `${'x'.repeat(9)}\n`

  test('drops what is over its bound, and says how many lines are missing once half of it is free', () => {
    const { write, written, goOn } = createSlowTarget()
    const sink = createLineSink(write, { bytesMax: 40, now: () => 0 })
    for (let count = 0; count < 8; count++) sink.write(line)
    expect(sink.dropped()).toBe(3)
    goOn()
    expect(written).toEqual(Array(5).fill(line))
    sink.write('after\n')
    goOn()
    const notice = { time: '1970-01-01T00:00:00.000Z', level: 'error', event: 'log_lines_dropped', lines: 3 }
    expect(written.slice(5)).toEqual([`${JSON.stringify(notice)}\n`, 'after\n'])
  })

  test('says at the end how many lines are missing, and gives up when its reader does not go on', async () => {
    const { write, written, goOn } = createSlowTarget()
    const sink = createLineSink(write, { bytesMax: 10 })
    for (let count = 0; count < 4; count++) sink.write(line)
    await sink.flush(1)
    expect(written).toEqual([])
    const flushed = sink.flush(20_000)
    goOn()
    await until('the notice', () => {
      goOn()
      return written.length === 3
    })
    await flushed
    expect(written.at(-1)).toContain('"lines":2')
  })

  test('counts lines that cannot be written, and reports the first failure of a series', () => {
    const failures: string[] = []
    let isFailing = true
    const write: WriteText = (_text, done) => done(isFailing ? new Error('full') : null)
    const sink = createLineSink(write, { onFailure: ({ message }) => void failures.push(message) })
    for (const next of [true, true, false, true]) {
      isFailing = next
      sink.write(line)
    }
    expect({ failures, dropped: sink.dropped() }).toEqual({ failures: ['full', 'full'], dropped: 3 })
  })
})

describe('a file', () => {
  let folder: ReturnType<typeof temporaryFolder>
  beforeEach(() => {
    folder = temporaryFolder()
  })
  afterEach(() => folder.remove())

  test('gets every line in order, also after it was closed with lines on their way', async () => {
    const path = join(folder.path, 'access.log')
    const { write, close } = createFileWriter(openSync(path, 'a'))
    const lines = Array.from({ length: 20_000 }, (_, index) => `${index} ${'x'.repeat(200)}\n`)
    const done = lines.map((each) => new Promise<unknown>((resolve) => write(each, resolve)))
    close()
    renameSync(path, `${path}.1`)
    expect(new Set(await Promise.all(done))).toEqual(new Set([null]))
    expect(readFileSync(`${path}.1`, 'utf8')).toBe(lines.join(''))
  })
})

describe('a server whose reader of standard error has stalled', () => {
  let installation: Installation
  beforeEach(async () => {
    installation = await install()
  })
  afterEach(() => installation.remove())

  test('responds as always, and loses no line when the reader goes on before the end', async () => {
    const fifo = join(installation.folder, 'stderr')
    expect(Bun.spawnSync(['mkfifo', fifo]).exitCode).toBe(0)
    // Opened for both, it needs no reader. Nothing reads, so a write of more than a pipe holds would wait.
    const stderr = openSync(fifo, 'r+')
    const child = Bun.spawn([...compiledProgram(), 'serve', '--json'], {
      cwd: installation.folder,
      env: { ...installation.env, LATCHKEY_ACCESS_LOG: 'stderr' },
      stdout: 'pipe',
      stderr,
    })
    const { value } = await child.stdout.getReader().read()
    const { listening } = JSON.parse(Buffer.from(value ?? []).toString()) as Record<string, string>
    const requests = 600
    for (let count = 0; count < requests; count += 20)
      await Promise.all(Array.from({ length: 20 }, async () => (await fetch(`http://${listening}/livez`)).text()))

    let text = ''
    const reader = createReadStream(fifo, { encoding: 'utf8' }).on('data', (chunk) => {
      text += chunk
    })
    child.kill('SIGTERM')
    expect(await child.exited).toBe(0)
    await until('the last line', () => text.includes('"stopped"'))
    expect(text.split('"path":"/livez"').length - 1).toBe(requests)
    reader.destroy()
    closeSync(stderr)
  })
})

test('after a line that the disk took only in part, the next one is on its own line', async () => {
  const folder = temporaryFolder()
  const fifo = join(folder.path, 'small')
  expect(Bun.spawnSync(['mkfifo', fifo]).exitCode).toBe(0)
  // A pipe without a reader takes 64 KiB and then fails, as a full disk does.
  const pipe = openSync(fifo, constants.O_RDWR | constants.O_NONBLOCK)
  const { write, close } = createFileWriter(pipe)
  const written = (text: string) => new Promise<unknown>((resolve) => write(text, resolve))
  expect(await written(`${'a'.repeat(100_000)}\n`)).toHaveProperty('code', 'EAGAIN')
  readSync(pipe, Buffer.alloc(100_000))
  expect(await written('b\n')).toBe(null)
  expect(await written('c\n')).toBe(null)
  const rest = Buffer.alloc(100)
  expect(rest.toString('utf8', 0, readSync(pipe, rest))).toBe('\nb\nc\n')
  close()
  folder.remove()
})
