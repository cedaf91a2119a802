// Admin operations on upstreams: the inference servers of the installation, which models each serves, and whether it answers.

import type { Upstream as UpstreamRow } from '../../db/schema.ts'
import { listSigningKeys } from '../../db/signing-keys.ts'
import { insertUpstream, updateUpstream } from '../../db/upstreams.ts'
import { describeError, Fault } from '../fault.ts'
import { modelsIn, readListBody } from '../inference/models/model-list.ts'
import { createCredentials, sealCredential } from '../inference/upstream/credentials.ts'
import { type Doing, headerProblem } from '../inference/upstream/headers.ts'
import { configuredUpstreamName, type Upstream } from '../inference/upstream/targets.ts'
import {
  issuerCaCharactersMax,
  upstreamCheckMillisecondsMax,
  upstreamFirstByteSecondsDefault,
  upstreamHeadersMax,
  upstreamIdleSecondsDefault,
  upstreamPriorityMax,
  upstreamSecondsMax,
  urlCharactersMax,
} from '../limits.ts'
import { openMasterKey } from '../tokens/keyring.ts'
import { type } from '../values/shape.ts'
import { modelPatternsShape, nameShape, referenceShape } from '../values/shapes.ts'
import { commit } from './commit.ts'
import type { AdminContext } from './context.ts'
import { checkCertificates } from './issuers.ts'
import { type OperationContext, operation } from './operation.ts'
import { checkChanges, notFound, timeOf } from './references.ts'

const seconds = `1 <= number.integer <= ${upstreamSecondsMax}` as const
/** Written as it is used, so that an admin sees where requests go. What may hold a credential is not told back. */
const urlShape = type('string').narrow((text, context) => {
  const url = URL.canParse(text) && text.length <= urlCharactersMax ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || /[?#@]/.test(text)) {
    const expected = 'an http:// or https:// address without credentials, query or fragment'
    return context.reject({ expected, actual: '' })
  }
  return withoutSlash(text) === withoutSlash(url.href) || context.mustBe(`written as ${withoutSlash(url.href)}`)
})
/** What goes into a header of every request. A refusal does not tell what it was, as those of other shapes do. */
const credentialShape = type('unknown')
  .narrow(
    (value, context) =>
      value === null ||
      (typeof value === 'string' && /^[\x21-\x7e]{1,4096}$/.test(value)) ||
      context.reject({
        expected: 'at most 4096 characters of printable ASCII without spaces, on one line',
        actual: '',
      }),
  )
  .as<string | null>()

const headersShape = type('string').array().atMostLength(upstreamHeadersMax).or('null')

const fields = {
  'credential?': credentialShape,
  'models?': modelPatternsShape,
  'priority?': `0 <= number.integer <= ${upstreamPriorityMax}`,
  'ca_pem?': `string <= ${issuerCaCharactersMax} | null`,
  'first_byte_seconds?': seconds,
  'idle_seconds?': seconds,
  'forward_headers?': headersShape,
  'return_headers?': headersShape,
} as const
const addInput = type({ '+': 'reject', ...fields, name: nameShape, base_url: urlShape })
const updateInput = type({
  '+': 'reject',
  ...fields,
  upstream: referenceShape,
  'name?': nameShape,
  'base_url?': urlShape,
})
const oneInput = type({ '+': 'reject', upstream: referenceShape })
const checkInput = type({ '+': 'reject', 'upstream?': referenceShape })

export const upstreamOperations = {
  'upstreams.add': operation(addInput, addUpstream, { mutates: true }),
  'upstreams.list': operation(type({ '+': 'reject' }), async ({ registry }) => ({
    data: registry.upstreamsInOrder.map(showUpstream),
  })),
  'upstreams.show': operation(oneInput, async (context, { upstream }) => showUpstream(findAny(context, upstream))),
  'upstreams.update': operation(updateInput, changeUpstream, { mutates: true }),
  'upstreams.remove': operation(oneInput, removeUpstream, { mutates: true }),
  'upstreams.check': operation(checkInput, checkUpstreams),
}

async function changeUpstream(context: OperationContext, input: typeof updateInput.infer) {
  checkChanges(input, ['upstream'])
  const upstream = find(context, input.upstream)
  if (input.name !== undefined) checkName(context, input.name, upstream.id)
  const { base_url, ca_pem, first_byte_seconds, idle_seconds } = input
  if (typeof ca_pem === 'string') checkCertificates(ca_pem)
  const change: Partial<UpstreamRow> = {
    ...(input.name === undefined ? {} : { name: input.name }),
    ...(base_url === undefined ? {} : { baseUrl: withoutSlash(base_url) }),
    ...(input.models === undefined ? {} : { models: input.models }),
    ...(input.priority === undefined ? {} : { priority: input.priority }),
    ...(ca_pem === undefined ? {} : { caPem: ca_pem }),
    ...(first_byte_seconds === undefined ? {} : { firstByteSeconds: first_byte_seconds }),
    ...(idle_seconds === undefined ? {} : { idleSeconds: idle_seconds }),
    ...headerColumns(input),
    ...(await credentialColumn(context, upstream.id, input.credential)),
    updatedAt: context.now(),
  }
  await commit(context, [updateUpstream(context.orm, upstream.id, change)], [{ kind: 'upstream', id: upstream.id }])
  return showUpstream(find(context, upstream.id))
}

async function removeUpstream(context: OperationContext, input: typeof oneInput.infer) {
  const { id } = find(context, input.upstream)
  const change = { deletedAt: context.now(), updatedAt: context.now(), credentialEncrypted: null }
  await commit(context, [updateUpstream(context.orm, id, change)], [{ kind: 'upstream', id }])
  return { id, deleted: true }
}

async function checkUpstreams(context: OperationContext, { upstream }: typeof checkInput.infer) {
  const checked = upstream === undefined ? context.registry.upstreamsInOrder : [findAny(context, upstream)]
  return { data: await Promise.all(checked.map((each) => checkUpstream(context, each))) }
}

async function addUpstream(context: OperationContext, input: typeof addInput.infer) {
  checkName(context, input.name)
  if (typeof input.ca_pem === 'string') checkCertificates(input.ca_pem)
  const id = crypto.randomUUID()
  const now = context.now()
  const row: UpstreamRow = {
    id,
    name: input.name,
    baseUrl: withoutSlash(input.base_url),
    credentialEncrypted: null,
    ...(await credentialColumn(context, id, input.credential)),
    models: input.models ?? ['*'],
    priority: input.priority ?? upstreamPriorityMax,
    caPem: input.ca_pem ?? null,
    firstByteSeconds: input.first_byte_seconds ?? upstreamFirstByteSecondsDefault,
    idleSeconds: input.idle_seconds ?? upstreamIdleSecondsDefault,
    forwardHeaders: [],
    returnHeaders: [],
    ...headerColumns(input),
    createdAt: now,
    updatedAt: now,
    deletedAt: null,
  }
  await commit(context, [insertUpstream(context.orm, row)], [{ kind: 'upstream', id }])
  return showUpstream(find(context, id))
}

type Headers = { forward_headers?: string[] | null; return_headers?: string[] | null }

function headerColumns({ forward_headers, return_headers }: Headers): Partial<UpstreamRow> {
  return {
    ...(forward_headers === undefined ? {} : { forwardHeaders: readHeaders(forward_headers ?? [], 'forwarded') }),
    ...(return_headers === undefined ? {} : { returnHeaders: readHeaders(return_headers ?? [], 'returned') }),
  }
}

function readHeaders(names: string[], doing: Doing): string[] {
  const problem = names.map((name) => headerProblem(name, doing)).find((found) => found !== undefined)
  if (problem !== undefined) throw new Fault('invalid', problem)
  return [...new Set(names.map((name) => name.toLowerCase()))]
}

async function credentialColumn(context: AdminContext, id: string, credential: string | null | undefined) {
  if (credential === undefined) return {}
  if (credential === null) return { credentialEncrypted: null }
  const masterKey = await openMasterKey(context.config.masterKey, await listSigningKeys(context.orm))
  return { credentialEncrypted: await sealCredential(masterKey, id, credential) }
}

/** Asks an upstream for its models, as a request would. */
async function checkUpstream(context: AdminContext, upstream: Upstream) {
  const startedAt = performance.now()
  const told = (answer: { ok: boolean; models: number | null; problem: string | null }) => ({
    name: upstream.name,
    base_url: upstream.baseUrl,
    ...answer,
    milliseconds: Math.round(performance.now() - startedAt),
  })
  try {
    const masterKey = await openMasterKey(context.config.masterKey, await listSigningKeys(context.orm))
    const credential = await createCredentials(masterKey, context.config.upstreamApiKey)(upstream)
    const response = await context.outbound.fetch(`${upstream.baseUrl}/models`, {
      headers: {
        'accept-encoding': 'identity',
        ...(credential === undefined ? {} : { authorization: `Bearer ${credential}` }),
      },
      redirect: 'manual',
      decompress: false,
      signal: AbortSignal.timeout(upstreamCheckMillisecondsMax),
      ...(upstream.caPem === null ? {} : { ca: upstream.caPem }),
    })
    const problem = problemOf(response)
    if (problem !== undefined) {
      await response.body?.cancel()
      return told({ ok: false, models: null, problem })
    }
    const models = modelsIn(await readListBody(response))
    return models === undefined
      ? told({ ok: false, models: null, problem: 'its answer is no list of models' })
      : told({ ok: true, models: models.length, problem: null })
  } catch (error) {
    return told({ ok: false, models: null, problem: describeError(error) })
  }
}

function problemOf({ status, headers }: Response): string | undefined {
  if (status === 401 || status === 403) return `it answers ${status}: see its credential`
  if (status === 404) return 'it answers 404: its base URL usually ends in /v1'
  if (status !== 200) return `it answers ${status}`
  const encoding = headers.get('content-encoding') ?? 'identity'
  return encoding === 'identity' ? undefined : 'its answer is encoded, which it was not asked for'
}

function findAny({ registry }: AdminContext, reference: string): Upstream {
  const found = registry.upstreamsInOrder.find(({ id, name }) => id === reference || name === reference)
  if (found === undefined) throw notFound('upstream', reference)
  return found
}

/** One that was added, and so can be changed. */
function find(context: AdminContext, reference: string): Upstream {
  if (reference === configuredUpstreamName)
    throw new Fault('invalid', 'The upstream "configured" is the one of LATCHKEY_UPSTREAM_URL; change it there')
  return findAny(context, reference)
}

function checkName({ registry }: AdminContext, name: string, exceptId?: string): void {
  const isTaken = registry.upstreamsInOrder.some((row) => row.name === name && row.id !== exceptId)
  if (name === configuredUpstreamName || isTaken)
    throw new Fault('conflict', `There is an upstream named ${JSON.stringify(name)} already`)
}

function withoutSlash(url: string): string {
  return url.replace(/\/+$/, '')
}

function showUpstream(row: Upstream) {
  const isConfigured = row.id === configuredUpstreamName
  return {
    id: row.id,
    name: row.name,
    base_url: row.baseUrl,
    has_credential: row.credentialEncrypted !== null,
    models: row.models,
    priority: row.priority,
    ca_pem: row.caPem,
    first_byte_seconds: row.firstByteSeconds,
    idle_seconds: row.idleSeconds,
    forward_headers: row.forwardHeaders,
    return_headers: row.returnHeaders,
    created_at: isConfigured ? null : timeOf(row.createdAt),
    updated_at: isConfigured ? null : timeOf(row.updatedAt),
  }
}
