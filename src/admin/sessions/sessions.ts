// Admin operations on sessions of the admin page: one-time links, and the list. On a database file they need the server
// that serves the page; a server database has what they need.

import { Fault } from '../../fault.ts'
import { checkKeyState, keyStateOf } from '../../keys/api-key.ts'
import type { Page } from '../../page/page.ts'
import { createSessions } from '../../page/sessions.ts'
import { createSignInLinks } from '../../page/sign-in-links.ts'
import { pageUrlFor } from '../../settings/addresses.ts'
import { type } from '../../values/shape.ts'
import { referenceShape, uuidShape } from '../../values/shapes.ts'
import type { ChangeContext } from '../operation/commit.ts'
import type { Needs } from '../operation/context.ts'
import { operation } from '../operation/operation.ts'
import { findKey, findOrganization, notFound, organizationInput, timeOf } from '../operation/references.ts'
import { endSession } from './begin-session.ts'
import { showSession } from './session-response.ts'

const linkInput = type({ '+': 'reject', ...organizationInput, 'key?': referenceShape, 'read_only?': 'boolean' })
const listInput = type({ '+': 'reject', ...organizationInput })
const endInput = type({ '+': 'reject', ...organizationInput, session: uuidShape })

export const sessionOperations = {
  'sessions.link': operation(linkInput, createLink),
  'sessions.list': operation(listInput, listSessions),
  'sessions.end': operation(endInput, end, { mutates: true }),
}

/** What finding the sessions and links needs, with a page in this process or without. */
type PageContext = Needs<'config' | 'database' | 'orm' | 'writer' | 'registry' | 'page' | 'now'>

/** A link is as good as its key, so only who can open the local socket or has the settings of a node gets one. */
async function createLink(
  context: PageContext & Needs<'actor'>,
  { organization, key, read_only }: typeof linkInput.infer,
) {
  const page = pageOf(context)
  if (context.actor.kind === 'key')
    throw new Fault('forbidden', 'Links are made on a machine with the settings of the server')
  const url = page.url()
  const { id, name } = chooseKey(context, organization, key)
  const openedBy = context.actor.kind === 'local' ? (context.actor.sudoUser ?? context.actor.osUser ?? null) : null
  const { token, lifetimeMilliseconds } = await page.links.create({ keyId: id, readOnly: read_only ?? false, openedBy })
  return {
    url: `${url}#link=${token}`,
    key_name: name,
    expires_at: timeOf(context.now() + lifetimeMilliseconds),
  }
}

/** The management key that was named, or the only one in use that may write. */
function chooseKey(
  { registry, now }: Needs<'registry' | 'now'>,
  organization: string | undefined,
  reference: string | undefined,
) {
  const { id: organizationId } = findOrganization(registry, organization)
  if (reference !== undefined) {
    const key = findKey(registry, reference, organizationId)
    if (key.kind === 'inference')
      throw new Fault('invalid', `The key ${JSON.stringify(key.name)} is an inference key: choose a management key`)
    const state = keyStateOf(key, now())
    if (state !== 'enabled') throw new Fault('invalid', `The key ${JSON.stringify(key.name)} is ${state}`)
    return checkKeyState(key, now())
  }
  const usable = [...registry.keys.values()].filter(
    (key) =>
      key.organizationId === organizationId &&
      key.kind === 'management' &&
      key.deletedAt === null &&
      keyStateOf(key, now()) === 'enabled',
  )
  const [only, ...others] = usable
  if (only === undefined)
    throw new Fault('not_found', 'The organization has no management key in use', {
      hint: '; create one: latchkey keys create --management --name NAME',
    })
  if (others.length === 0) return only
  const names = usable.slice(0, 10).map(({ name }) => JSON.stringify(name))
  throw new Fault('invalid', `There are several management keys: choose one with --key: ${names.join(', ')}`)
}

async function listSessions(context: PageContext & Needs<'actor'>, { organization }: typeof listInput.infer) {
  const { id } = findOrganization(context.registry, organization)
  const { actor } = context
  const currentId = actor.kind === 'key' ? actor.sessionId : undefined
  const shown = pageOf(context)
    .sessions.list(id)
    .map((session) => showSession(context.registry, session, { currentId, showsUsers: actor.kind !== 'key' }))
  return { data: shown.toSorted((one, other) => (one.used_at < other.used_at ? 1 : -1)) }
}

async function end(context: ChangeContext & PageContext, { organization, session: id }: typeof endInput.infer) {
  const page = pageOf(context)
  const organizationId = findOrganization(context.registry, organization).id
  if (!page.sessions.list(organizationId).some(({ row }) => row.id === id)) throw notFound('session', id)
  await endSession(context, id)
  return { id, ended: true }
}

/** @throws Fault `conflict` where no sessions are */
function pageOf(context: PageContext): Pick<Page, 'links' | 'sessions'> & { url: () => string } {
  const { page, config, database } = context
  if (page !== undefined) return { ...page, url: () => page.url }
  if (config.adminPage && database.kind === 'server')
    return { links: createSignInLinks(context), sessions: createSessions(context), url: () => pageUrlOf(context) }
  const why = config.adminPage ? 'No server is running here' : 'LATCHKEY_ADMIN_PAGE turns the admin page off'
  throw new Fault('conflict', `${why}, so there are no sessions of the admin page`)
}

/** Where browsers open the page of any node. */
function pageUrlOf({ config }: Needs<'config'>): string {
  if (config.baseUrl !== undefined) return pageUrlFor(config, config.baseUrl)
  throw new Fault(
    'configuration',
    'Set LATCHKEY_BASE_URL to the URL that clients of the nodes use: links begin with it',
  )
}
