// Anthropic's official clients sign in by themselves (reference: The jwt-bearer grant): each runs unchanged, with nothing
// but environment variables, past the end of its access token and of the JWT in its file. Python needs `anthropic`; Go
// needs its module in the module cache.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createEchoUpstream } from '../../scripts/dev/echo-upstream.ts'
import type { Listener } from '../../src/runtime/listen.ts'
import { outboundFetch } from '../../src/runtime/outbound.ts'
import { listenLocally, type Row, temporaryFolder, upstreamApiKey } from '../support/latchkey.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../support/pasted-issuer.ts'

const root = join(import.meta.dirname, '../..')
const folder = temporaryFolder()
const jwtFile = join(folder.path, 'jwt')
let latchkey: PastedIssuer
let upstream: Listener

beforeAll(async () => {
  const { url, listener } = await listenLocally(createEchoUpstream(upstreamApiKey))
  upstream = listener
  latchkey = await startWithPastedIssuer({ upstreamUrl: `${url}/v1`, dependencies: { fetch: outboundFetch } })
})
afterAll(async () => {
  await latchkey.stop()
  await upstream.drain()
  folder.remove()
})

/** Each program prints the text of the response to each line of its input, or the error. */
const typescript = `
  import Anthropic from '@anthropic-ai/sdk'
  const client = new Anthropic()
  for await (const content of console) {
    const body = { model: 'echo', max_tokens: 16, messages: [{ role: 'user', content }] }
    console.log(await client.messages.create(body).then(({ content: [part] }) => part.text, String))
  }`
const python = `
import sys
from anthropic import Anthropic
client = Anthropic()
for line in sys.stdin:
    messages = [{"role": "user", "content": line.strip()}]
    try:
        print(client.messages.create(model="echo", max_tokens=16, messages=messages).content[0].text, flush=True)
    except Exception as error:
        print(error, flush=True)
`
const go = `package main

import (
	"bufio"
	"context"
	"fmt"
	"os"

	"github.com/anthropics/anthropic-sdk-go"
)

func main() {
	client := anthropic.NewClient()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		message, err := client.Messages.New(context.Background(), anthropic.MessageNewParams{
			MaxTokens: 16,
			Model:     "echo",
			Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(lines.Text()))},
		})
		if err != nil {
			fmt.Println(err)
		} else {
			fmt.Println(message.Content[0].Text)
		}
	}
}
`

const python3 = Bun.which('python3')
const hasPython = python3 !== null && Bun.spawnSync([python3, '-c', 'import anthropic']).exitCode === 0
const goProgram = Bun.which('go')
const goVersion = goProgram === null ? undefined : newestInGoCache(goProgram)

function newestInGoCache(program: string): string | undefined {
  const cache = Bun.spawnSync([program, 'env', 'GOMODCACHE']).stdout.toString().trim()
  try {
    const names = readdirSync(join(cache, 'github.com/anthropics')).filter((name) =>
      name.startsWith('anthropic-sdk-go@'),
    )
    return names.toSorted().at(-1)?.split('@')[1]
  } catch {
    return undefined
  }
}

const goEnvironment = { GOFLAGS: '-mod=mod', GOPROXY: 'off', GOTOOLCHAIN: 'local', GONOSUMDB: '*', GONOSUMCHECK: '1' }

function buildGo(): string {
  const env = { ...process.env, ...goEnvironment }
  const required = `require github.com/anthropics/anthropic-sdk-go ${goVersion}`
  writeFileSync(join(folder.path, 'go.mod'), `module ask\n\ngo 1.23\n\n${required}\n`)
  writeFileSync(join(folder.path, 'main.go'), go)
  const built = Bun.spawnSync([goProgram ?? '', 'build', '-o', 'ask', '.'], { cwd: folder.path, env })
  if (built.exitCode !== 0) throw new Error(built.stderr.toString())
  return join(folder.path, 'ask')
}

type Client = { name: string; isMissing: boolean; cwd: string; program: () => string[] }
const clients: Client[] = [
  { name: 'TypeScript', isMissing: false, cwd: root, program: () => [process.execPath, '-e', typescript] },
  { name: 'Python (needs anthropic)', isMissing: !hasPython, cwd: root, program: () => [python3 ?? '', '-c', python] },
  {
    name: 'Go (needs anthropic-sdk-go)',
    isMissing: goVersion === undefined,
    cwd: folder.path,
    program: () => [buildGo()],
  },
]

function startClient({ cwd, program }: Client): { ask: (line: string) => Promise<string>; end: () => Promise<number> } {
  const child = Bun.spawn(program(), {
    cwd,
    env: {
      HOME: folder.path,
      ANTHROPIC_BASE_URL: latchkey.server.baseUrl.replace('/v1', ''),
      ANTHROPIC_FEDERATION_RULE_ID: latchkey.policy.id,
      ANTHROPIC_ORGANIZATION_ID: 'any',
      ANTHROPIC_IDENTITY_TOKEN_FILE: jwtFile,
    },
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const answers = child.stdout.pipeThrough(new TextDecoderStream()).getReader()
  return {
    ask: async (line) => {
      child.stdin.write(`${line}\n`)
      await child.stdin.flush()
      return ((await answers.read()).value ?? '').trim()
    },
    end: () => {
      child.stdin.end()
      return child.exited
    },
  }
}

/** Puts a JWT into the file, as a platform does: with a line feed. */
async function writeJwt(lifetimeSeconds: number): Promise<void> {
  const exp = Math.floor(latchkey.clock.now / 1_000) + lifetimeSeconds
  writeFileSync(jwtFile, `${await latchkey.sign({ exp })}\n`)
}

const countExchanges = async () => (await latchkey.admin<{ data: Row[] }>('audit.list', { limit: 1_000 })).data.length

for (const client of clients) {
  test.skipIf(client.isMissing)(
    `${client.name} signs in, and again when its token or the JWT in its file has expired`,
    async () => {
      const before = await countExchanges()
      await writeJwt(20)
      const { ask, end } = startClient(client)
      expect(await ask('first')).toBe('first')
      // By the clock of the client, the token expires so soon that it asks for another one before the next request.
      latchkey.clock.now += 60_000
      await writeJwt(3_600)
      expect(await ask('second')).toBe('second')
      expect(await ask('third')).toBe('third')
      expect((await countExchanges()) - before).toBe(2)
      // By the clock of the server alone, token and JWT have expired: a 401 makes the client exchange again.
      latchkey.clock.now += 7_200_000
      await writeJwt(3_600)
      expect(await ask('fourth')).toBe('fourth')
      expect((await countExchanges()) - before).toBe(3)
      expect(await end()).toBe(0)
      const { data } = await latchkey.admin<{ data: Row[] }>('usage.requests', { limit: 4 })
      expect(data.map((row) => [row.endpoint, row.policy_id])).toEqual(
        Array(4).fill(['/messages', latchkey.policy.id]) as never,
      )
    },
    300_000,
  )
}
