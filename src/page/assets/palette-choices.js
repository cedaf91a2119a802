// What the palette offers: views, actions, and objects by their names. An action can be on one of several objects: it then asks which one.
/** @import { Session } from '../types.ts' */
import { appearances, setAppearance } from './appearance.js'
import { get } from './client.js'
import { go, goToDo } from './router.js'
import { groups } from './views.js'

/** Lists whose objects have a name, and what may be created there. */
export const kinds = [
  { view: 'policies', path: '/workload-identity/policies', act: 'policies.create', create: 'New policy', id: 'id' },
  { view: 'issuers', path: '/workload-identity/issuers', act: 'issuers.add', create: 'Add issuer', id: 'id' },
  { view: 'keys', path: '/keys', act: 'keys.create', create: 'Create key', id: 'hash' },
  { view: 'budgets', path: '/budgets', act: 'budgets.create', create: 'Create budget', id: 'id' },
  { view: 'presets', path: '/presets', act: 'presets.save', create: 'New preset', id: 'slug' },
]
/** @typedef {typeof kinds[number]} Kind */

/** How people say that they want a new one. */
const creating = 'new create add'

/**
 * What can be done: at a place, or to one of the objects of a view, of which `only` filters the list. `does` is what the view knows it by;
 * without it, the place is a form.
 * @typedef {{ title: string, act: string, view: string, path?: readonly string[], only?: Record<string, string>, does?: string, isToOne?: true }} Deed
 */
/** @type {readonly Deed[]} */
const deeds = [
  {
    title: 'Rotate a key',
    act: 'keys.rotate',
    view: 'keys',
    only: { state: 'enabled' },
    does: 'rotate',
    isToOne: true,
  },
  {
    title: 'Disable a key',
    act: 'keys.disable',
    view: 'keys',
    only: { state: 'enabled' },
    does: 'disable',
    isToOne: true,
  },
  { title: 'Delete a key', act: 'keys.delete', view: 'keys', does: 'delete', isToOne: true },
  { title: 'Top up a budget', act: 'budgets.top_up', view: 'budgets', does: 'top_up', isToOne: true },
  {
    title: 'Pause a policy',
    act: 'policies.pause',
    view: 'policies',
    only: { state: 'enabled' },
    does: 'pause',
    isToOne: true,
  },
  {
    title: 'Resume a policy',
    act: 'policies.resume',
    view: 'policies',
    only: { state: 'paused' },
    does: 'resume',
    isToOne: true,
  },
  { title: 'Delete a policy', act: 'policies.delete', view: 'policies', does: 'delete', isToOne: true },
  { title: 'Back up now', act: 'backup.create', view: 'system', does: 'backup' },
  { title: 'Rotate the signing key', act: 'signing_keys.rotate', view: 'system', does: 'rotate' },
  { title: 'Create workspace', act: 'workspaces.create', view: 'organization', does: 'create_workspace' },
  { title: 'Set a price', act: 'prices.set', view: 'upstreams', path: ['prices', 'new'] },
  { title: 'Add webhook', act: 'webhooks.add', view: 'webhooks', path: ['new'] },
  { title: 'Invite a colleague', act: 'keys.create', view: 'keys', path: ['invite'] },
]

/** `words` also find it. @typedef {{ title: string, kind: string, words?: string, open?: () => void, deed?: Deed }} Choice */

const foundMax = 5
export const shownMax = 12

/** What needs no request. @param {Session} session @returns {Choice[]} */
export function ownChoices({ may }) {
  /** @type {Choice[]} */
  const views = groups.flatMap(({ entries }) =>
    entries.map(({ name, title }) => ({ title, kind: 'view', open: () => go([name]) })),
  )
  const created = kinds.filter(({ act }) => may.includes(act))
  return [
    ...views,
    ...created.map(({ view, create }) => ({
      ...{ title: create, kind: 'action', words: creating },
      open: () => go([view, 'new']),
    })),
    ...deeds.filter(({ act }) => may.includes(act)).map(choiceOf),
    ...Object.entries(appearances).map(([name, title]) => ({
      ...{ title: `Appearance: ${title}`, kind: 'action', words: `${name} mode theme` },
      open: () => setAppearance(name),
    })),
  ]
}

/** @param {Deed} deed @returns {Choice} */
function choiceOf(deed) {
  const { title, view, path = [], does, isToOne } = deed
  if (isToOne) return { title, kind: 'action', deed }
  const open = () => (does === undefined ? go([view, ...path]) : goToDo([view], does))
  return { title, kind: 'action', words: creating, open }
}

/** @param {Kind} kind @param {string} text @param {number} limit @param {Record<string, string>} [only] @returns {Promise<Record<string, string>[]>} */
const rowsOf = async ({ path }, text, limit, only) => (await get(path, { contains: text, limit, ...only })).data

/** Objects whose names contain the text. @param {string} text @returns {Promise<Choice[]>} */
export async function findObjects(text) {
  const found = kinds.map(async (kind) =>
    (await rowsOf(kind, text, foundMax)).map((row) => ({
      title: row.name ?? row.slug ?? '',
      kind: kind.view.replace(/ies$/, 'y').replace(/s$/, ''),
      open: () => go([kind.view, row[kind.id] ?? '']),
    })),
  )
  return (await Promise.all(found.map((each) => each.catch(() => [])))).flat()
}

/** The objects to which the caller can do it. @param {Session} session @param {Deed} deed @param {string} text @returns {Promise<Choice[]>} */
export async function findTargets({ role }, { view, only, does = '' }, text) {
  const kind = kinds.find((each) => each.view === view)
  if (kind === undefined) return []
  const rows = await rowsOf(kind, text, shownMax, only)
  // A key that may do more than the caller is not theirs to change.
  const own = rows.filter((row) => row.role !== 'admin' || role === 'admin')
  return own.map((row) => ({
    ...{ title: row.name ?? '', kind: row.role ?? '' },
    open: () => goToDo([view, row[kind.id] ?? ''], does),
  }))
}

/** “pause docs”: what the first word does, to each of those that the others name. @param {Session} session @param {string} text @returns {Promise<Choice[]>} */
export async function findDone(session, text) {
  const { may } = session
  const [, verb = '', name = ''] = /^(\S+)\s+(?:an? (?:key|policy|budget)\s+)?(.+)$/.exec(text.toLowerCase()) ?? []
  const meant = deeds.filter(
    ({ title, isToOne, act }) => isToOne && may.includes(act) && title.toLowerCase().startsWith(`${verb} `),
  )
  if (verb === '' || name === '') return []
  const found = meant.map(async (deed) =>
    (await findTargets(session, deed, name)).map((each) => ({
      ...each,
      title: `${deed.title.split(' ')[0]} ${each.title}`,
      kind: 'action',
    })),
  )
  return (await Promise.all(found.map((each) => each.catch(() => [])))).flat()
}

/** Each word of the text, in any order: “new key” finds Create key. @param {string} text @param {Choice} choice */
function fits(text, { title, words = '' }) {
  const own = `${title} ${words}`.toLowerCase()
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => own.includes(word))
}

/** Those that begin with the text first: “changes” is not Exchanges. @param {string} text @param {readonly Choice[]} choices */
export function fitting(text, choices) {
  const begins = (/** @type {Choice} */ { title }) => Number(title.toLowerCase().startsWith(text.toLowerCase()))
  return choices.filter((each) => fits(text, each)).toSorted((one, other) => begins(other) - begins(one))
}
