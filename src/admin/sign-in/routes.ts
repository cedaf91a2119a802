// The addresses of the sign-in with an issuer, beside those of the admin page. They are not part of the API, so the OpenAPI document does not
// have them.
import { Fault } from '../../fault.ts'
import type { Issuer } from '../../federation/issuer/issuer.ts'
import { isEntitled } from '../../federation/policy-binding.ts'
import type { Handle, ServedRoute } from '../../http/endpoint.ts'
import { allowsSessions } from '../../http/page-origin.ts'
import { json } from '../../http/reply.ts'
import type { Page } from '../../page/page.ts'
import { logOut } from './back-channel.ts'
import { beginSignIn, finishSignIn } from './sign-in.ts'
import type { SignInContext } from './sign-in-context.ts'

type RouteContext = Omit<SignInContext, 'page'> & { page?: Page | undefined }

const noStore = { 'cache-control': 'no-store' }

/** The issuers with which people sign in, as everybody may know. */
const listChoices: Handle<RouteContext> = async (_request, context) => {
  const { registry } = context
  const data = [...registry.issuers.values()]
    .filter((issuer) => clientOf(issuer, context) !== undefined)
    .map(({ id, name }) => ({ id, name }))
  return json(200, { data }, noStore)
}

const start: Handle<RouteContext> = async (request, context, info) => {
  const page = pageOf(context)
  // Another site must not begin a sign-in: the person would be signed in without wanting it.
  const site = request.headers.get('sec-fetch-site')
  if (site !== null && !['same-origin', 'none'].includes(site))
    throw new Fault('forbidden', `Begin the sign-in on the admin page: ${page.url}`)
  const issuer = context.registry.issuers.get(info.params.issuer ?? '')
  const clientId = issuer === undefined ? undefined : clientOf(issuer, context)
  if (issuer === undefined || clientId === undefined) throw new Fault('not_found', 'Resource not found')
  return beginSignIn(issuer, clientId, { ...context, page }, info)
}

const callback: Handle<RouteContext> = (request, context, info) =>
  finishSignIn(request, { ...context, page: pageOf(context) }, info)

const logout: Handle<RouteContext> = async (request, context, { requestId }) => {
  const ended = await logOut(request, { ...context, page: pageOf(context) })
  if (typeof ended === 'number') return new Response(null, { status: 200, headers: noStore })
  context.log('warn', 'logout_refused', { request_id: requestId, detail: ended })
  return json(400, { error: 'invalid_request', error_description: ended }, noStore)
}

/** Undefined where nobody can sign in with the issuer. */
function clientOf(
  { deletedAt, organizationId, pageClientId }: Issuer,
  { registry }: Pick<RouteContext, 'registry'>,
): string | undefined {
  const organization = registry.organizations.get(organizationId)
  const isInUse = deletedAt === null && organization !== undefined && isEntitled(organization)
  return isInUse ? (pageClientId ?? undefined) : undefined
}

function pageOf({ page }: RouteContext): Page {
  if (page === undefined) throw new Fault('not_found', 'Resource not found')
  if (!allowsSessions(page.origin))
    throw new Fault('forbidden', 'Sign-in needs HTTPS: a session over plain HTTP could be read on the way')
  return page
}

const common = { isBesideBase: true } as const

export const signInRoutes: ServedRoute<RouteContext>[] = [
  { ...common, method: 'GET', path: '/admin/sign-in', handle: listChoices },
  { ...common, method: 'GET', path: '/admin/sign-in/callback', handle: callback },
  { ...common, method: 'POST', path: '/admin/sign-in/logout', handle: logout },
  { ...common, method: 'GET', path: '/admin/sign-in/with/{issuer}', handle: start },
]
