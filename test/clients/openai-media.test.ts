// The official clients of OpenAI on the paths of audio, images and stored responses (reference: Uploads; Stored
// responses). The upstream speaks the protocol of the vendor's types. Python needs `openai`.
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import OpenAI, { toFile } from 'openai'
import { type Inference, startInference } from '../support/inference.ts'
import { type Row, runCommand } from '../support/latchkey.ts'

let latchkey: Inference
let stranger: string
const usage = { input_tokens: 5, output_tokens: 2, total_tokens: 7 }
const transcription = { text: 'hello', usage: { type: 'duration', seconds: 3 } }
const image = { created: 1, data: [{ b64_json: 'aGk=' }], usage }
const stored = {
  ...{ id: 'resp_1', object: 'response', created_at: 1, status: 'completed', model: 'gpt', error: null },
  output: [{ id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content: [] }],
  ...{ usage, parallel_tool_calls: true, tool_choice: 'auto', tools: [] },
}

function answerTo(request: Request): Response {
  const { pathname } = new URL(request.url)
  if (pathname.endsWith('/audio/speech'))
    return new Response('ID3 audio', { headers: { 'content-type': 'audio/mpeg' } })
  if (pathname.includes('/audio/')) return Response.json(transcription)
  if (pathname.includes('/images/')) return Response.json(image)
  if (pathname.endsWith('/input_items')) return Response.json({ object: 'list', data: [], has_more: false })
  if (request.method === 'DELETE') return Response.json({ id: 'resp_1', object: 'response', deleted: true })
  return Response.json(stored)
}

beforeAll(async () => {
  latchkey = await startInference()
  stranger = (await latchkey.admin<Row & { key: string }>('keys.create', { name: 'stranger' })).key
})
beforeEach(() => {
  latchkey.reset()
  latchkey.upstream.answer.current = answerTo
})
afterAll(() => latchkey.stop())

const sentPaths = () => latchkey.upstream.requests.map(({ method, path }) => `${method} ${path.replace('/v1', '')}`)
const expectedPaths = [
  'POST /audio/transcriptions',
  'POST /audio/speech',
  'POST /images/generations',
  'POST /images/edits',
  'POST /responses',
  'GET /responses/resp_1',
  'GET /responses/resp_1/input_items',
  'DELETE /responses/resp_1',
]

test('JavaScript: the client gets what the upstream answers, on each path', async () => {
  const client = new OpenAI({ baseURL: latchkey.server.baseUrl, apiKey: latchkey.accessToken })
  const file = await toFile(Buffer.from('RIFF'), 'a.wav')
  // As in the vendor's examples, the file comes first.
  expect(await client.audio.transcriptions.create({ file, model: 'whisper-1' })).toMatchObject({ text: 'hello' })
  const speech = await client.audio.speech.create({ model: 'tts-1', voice: 'alloy', input: 'Hello' })
  expect(await speech.text()).toBe('ID3 audio')
  expect((await client.images.generate({ model: 'image-1', prompt: 'a cat' })).data).toHaveLength(1)
  const edited = await client.images.edit({ model: 'image-1', prompt: 'a dog', image: [file, file] })
  expect(edited.usage).toMatchObject({ total_tokens: 7 })
  const { id } = await client.responses.create({ model: 'gpt', input: 'Hello' })
  expect(await client.responses.retrieve(id)).toMatchObject({ id, status: 'completed' })
  expect((await client.responses.inputItems.list(id)).data).toEqual([])
  await client.responses.delete(id)
  expect(sentPaths()).toEqual(expectedPaths)
  const other = new OpenAI({ baseURL: latchkey.server.baseUrl, apiKey: stranger })
  const refusal = await other.responses.retrieve(id).catch((error: unknown) => error)
  expect(refusal).toMatchObject({ status: 404, message: expect.stringContaining('The response does not exist') })
})

const python = `
import io, sys
from openai import OpenAI, NotFoundError
base_url, key, stranger = sys.argv[1:]
client = OpenAI(base_url=base_url, api_key=key)
file = ("a.wav", io.BytesIO(b"RIFF"))
assert client.audio.transcriptions.create(file=file, model="whisper-1").text == "hello"
assert client.audio.speech.create(model="tts-1", voice="alloy", input="Hello").read() == b"ID3 audio"
assert len(client.images.generate(model="image-1", prompt="a cat").data) == 1
images = [("a.png", b"PNG"), ("b.png", b"PNG")]
assert client.images.edit(model="image-1", prompt="a dog", image=images).usage.total_tokens == 7
id = client.responses.create(model="gpt", input="Hello").id
assert client.responses.retrieve(id).status == "completed"
assert client.responses.input_items.list(id).data == []
client.responses.delete(id)
try:
    OpenAI(base_url=base_url, api_key=stranger).responses.retrieve(id)
except NotFoundError as error:
    print(error.status_code)
`
const python3 = Bun.which('python3')
const hasPython = python3 !== null && Bun.spawnSync([python3, '-c', 'import openai']).exitCode === 0
test.skipIf(!hasPython)('Python: the same (needs openai)', async () => {
  const args = [latchkey.server.baseUrl, latchkey.accessToken, stranger]
  const program = [python3 ?? '', '-c', python]
  const env = { PATH: process.env.PATH ?? '' }
  const finished = await runCommand(args, { cwd: join(import.meta.dirname, '../..'), env, program })
  expect(finished).toEqual({ code: 0, stdout: '404\n', stderr: '' })
  expect(sentPaths()).toEqual(expectedPaths)
})
