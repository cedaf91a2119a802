// Signing in to the admin page and out of it, and who is signed in. Sign-in takes a management key or a one-time link; every failure
// has the same text.
import type { Role } from '../../../db/schema/value-names.ts'
import { Fault } from '../../fault.ts'
import { readJson } from '../../http/body.ts'
import { isKnown } from '../../http/conditional.ts'
import { documented } from '../../http/documented-route.ts'
import type { Endpoint, Handle } from '../../http/endpoint.ts'
import { checkFields, rejectQuery } from '../../http/input.ts'
import { errorResponses } from '../../http/operation-doc.ts'
import { allowsSessions, isFromPage } from '../../http/page-origin.ts'
import { json } from '../../http/reply.ts'
import { actorOf } from '../../keys/actor.ts'
import type { Key } from '../../keys/api-key.ts'
import { checkKeyText, hashApiKey, isApiKeyText, keyStateOf } from '../../keys/api-key.ts'
import { authenticateManagement, type BearerContext } from '../../keys/bearer.ts'
import { withRole } from '../../keys/roles.ts'
import type { Page } from '../../page/page.ts'
import { readCookie, setCookie } from '../../page/session-cookie.ts'
import { lifetimeSecondsMax } from '../../page/sessions.ts'
import { type } from '../../values/shape.ts'
import type { Needs } from '../operation/context.ts'
import { dataOf } from '../operation/responses.ts'
import { beginSession, endAsItself, endSession } from './begin-session.ts'
import { configurationRevision, type RevisionContext } from './configuration-revision.ts'
import { endedSessionResponse, identityResponse, showIdentity } from './session-response.ts'

export type SessionContext = BearerContext & RevisionContext & Needs<'orm' | 'writer' | 'registry' | 'page' | 'now'>

const bodyBytesMax = 4_096
const secretShape = type('0 < string <= 512')
const signInBody = type({ '+': 'reject', 'api_key?': secretShape, 'link?': secretShape })

const signIn: Handle<SessionContext> = async (request, context, { clientAddress, requestId }) => {
  const page = pageOf(context)
  rejectQuery(request)
  checkIsFromPage(request, page)
  const { api_key, link } = checkFields(await readJson(request, bodyBytesMax), signInBody)
  if ((api_key === undefined) === (link === undefined))
    throw new Fault('invalid', 'Send api_key or link, and not the other one')
  const signing = { ...context, page, clientAddress }
  const grant = api_key === undefined ? await fromLink(link ?? '', signing) : fromApiKey(api_key, signing)
  const cookie = readCookie(request, page.origin)
  const before = cookie === undefined ? undefined : page.sessions.find(cookie, { isUse: false })
  const { row, token } = await beginSession(context, page, { ...grant, clientAddress, requestId })
  if (before !== undefined) await endAsItself(before.row, context, requestId)
  context.callers.set(request, { keyId: row.keyId, sessionId: row.id })
  const key = withRole(grant.key, row.role)
  const data = await showIdentity(context, key, row)
  return reply({ data }, { 'set-cookie': setCookie(page.origin, token, lifetimeSecondsMax) })
}

type Grant = { key: Key; role: Role | null; openedBy: string | null }

type SignInContext = SessionContext & { page: Page; clientAddress: string | null }

function fromApiKey(text: string, context: SignInContext): Grant {
  const hash = hashApiKey(text)
  const found = isApiKeyText(text) ? context.registry.keysByHash.get(hash) : undefined
  if (found !== undefined) checkKeyText(found, hash, context.now())
  // The value that a session compares later.
  const key = checkKey(found && context.registry.keys.get(found.id), context)
  const seconds = context.page.signInRate.takeOf(key.id, context.clientAddress, context.now())
  if (seconds > 0) throw tooMany('This key signs in too often from this address: try again later', seconds)
  return { key, role: key.role, openedBy: null }
}

async function fromLink(token: string, context: SignInContext): Promise<Grant> {
  const grant = await context.page.links.take(token)
  const key = checkKey(grant && context.registry.keys.get(grant.keyId), context)
  return { key, role: grant?.readOnly === true ? 'viewer' : key.role, openedBy: grant?.openedBy ?? null }
}

/** Only the log says why. */
function checkKey(key: Key | undefined, { page, clientAddress, now }: SignInContext): Key {
  const state = key === undefined || key.deletedAt !== null ? 'unknown' : keyStateOf(key, now())
  if (key !== undefined && state === 'enabled' && key.kind !== 'inference') return key
  const why = {
    reason: 'sign_in_refused',
    detail: state === 'enabled' ? 'an inference key' : `the key or link is ${state}`,
  }
  const seconds = page.signInRate.takeRefused(clientAddress, now())
  if (seconds > 0) throw tooMany(`${doesNotSignIn}. Too many sign-ins failed from this address`, seconds, why)
  throw new Fault('unauthorized', doesNotSignIn, { ...why, headers: { 'www-authenticate': 'Bearer' } })
}

const doesNotSignIn = 'This does not sign in: use a management key that is in use, or a new link'

function tooMany(message: string, seconds: number, why = { reason: 'sign_in_rate' }): Fault {
  return new Fault('rate_limited', message, { ...why, headers: { 'retry-after': String(seconds) } })
}

function checkIsFromPage(request: Request, { origin, url }: Page): void {
  if (!allowsSessions(origin))
    throw new Fault('forbidden', 'Sign-in needs HTTPS: a session over plain HTTP could be read on the way')
  if (!isFromPage(request, origin)) throw new Fault('forbidden', `Sign in on the admin page: ${url}`)
}

const showCurrent: Handle<SessionContext> = async (request, context) => {
  const key = await authenticateManagement(request, context)
  rejectQuery(request)
  const { sessionId = '' } = context.callers.get(request) ?? {}
  return reply({ data: await showIdentity(context, key, context.page?.sessions.get(sessionId)?.row) })
}

/** It ends the session of the browser, read-only or not. */
const signOut: Handle<SessionContext> = async (request, context, { requestId }) => {
  const page = pageOf(context)
  rejectQuery(request)
  await authenticateManagement(request, context)
  const sessionId = context.callers.get(request)?.sessionId
  if (sessionId === undefined) throw new Fault('invalid', 'An API key has no session to end')
  const actor = actorOf(request, context, requestId)
  await endSession({ ...context, actor, operation: 'sessions.end' }, sessionId)
  return reply({ data: { id: sessionId, ended: true } }, { 'set-cookie': setCookie(page.origin, '', 0) })
}

/** The page polls it, so it reads one row by its number and mostly responds with a 304. */
const showRevision: Handle<SessionContext> = async (request, context) => {
  const key = await authenticateManagement(request, context)
  rejectQuery(request)
  const revision = await configurationRevision(context, key.organizationId)
  const headers = { etag: `"${revision}"`, 'cache-control': 'no-store' }
  if (isKnown(request, headers.etag)) return new Response(null, { status: 304, headers })
  return json(200, { data: { revision } }, headers)
}

function pageOf({ page }: SessionContext): Page {
  if (page === undefined) throw new Fault('not_found', 'Resource not found')
  return page
}

function reply(body: unknown, headers: Record<string, string> = {}): Response {
  return json(200, body, { ...headers, 'cache-control': 'no-store' })
}

const identity = { path: '/admin/session', data: identityResponse, says: 'Who is signed in' }

export const sessionEndpoints: Endpoint<SessionContext>[] = [
  documented({
    method: 'POST',
    ...identity,
    name: 'signIn',
    summary: 'Sign in to the admin page, which gets a session cookie',
    rules:
      'Send `api_key` or `link`. Only requests of the page itself are accepted; other programs send a management key as Bearer.',
    access: 'public',
    body: signInBody,
    errors: [403, 429],
    handle: signIn,
  }),
  documented({
    method: 'GET',
    ...identity,
    name: 'whoAmI',
    summary: 'Who the caller is: organization, workspace, key, and the session of the admin page',
    access: 'admin:viewer',
    handle: showCurrent,
  }),
  documented({
    method: 'DELETE',
    path: '/admin/session',
    name: 'signOut',
    summary: 'Sign out of the admin page',
    access: 'admin:viewer',
    data: endedSessionResponse,
    says: 'The session has ended',
    errors: [404],
    handle: signOut,
  }),
  {
    method: 'GET',
    path: '/admin/revision',
    handle: showRevision,
    openapi: {
      name: 'configurationRevision',
      summary: 'A text that changes with every administrative change; for polling with If-None-Match',
      access: 'admin:viewer',
      responses: {
        200: { description: 'The revision', shape: dataOf(type({ revision: 'string' })) },
        304: { description: 'Nothing has changed' },
        ...errorResponses(400, 401, 403),
      },
    },
  },
]
