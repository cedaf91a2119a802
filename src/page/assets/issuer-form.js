// The form that adds or changes an issuer. While somebody types its address, the server fetches its keys and shows them.
/** @import { Issuer, Verification } from '../../admin/transport/response-types.ts' */
/** @import { Page } from '../types.ts' */
/** @import { IssuerValues } from './issuer-fields.js' */
import { asProblem, segment, send } from './client.js'
import { control } from './control.js'
import { begin, createEdit, openEdit, saveEdit, trouble, unsavedMark } from './edit.js'
import { heldIn, numbersIn, sentFrom } from './fields.js'
import { forgetFindings } from './findings.js'
import { choice, debounce, form } from './form.js'
import { issuerFieldList, issuerFields } from './issuer-fields.js'
import { html, nothing } from './lit-html.js'
import { inline } from './markdown.js'
import { notify } from './notice.js'
import { badge, callout, count, empty, heading, loading, mayNot, mono, problem, stored } from './parts.js'
import { planNotice } from './plan.js'
import { guessPlatform, platforms } from './platforms.js'
import { asCommand } from './remedies.js'
import { go, href } from './router.js'
import { table } from './table.js'

export const issuersPath = '/workload-identity/issuers'
export const sources = { discovery: 'Discovery', jwks_url: 'JWKS URL', jwks: 'Pasted key set' }
const tested = ['issuer_url', 'source', 'jwks_url', 'jwks', 'ca_pem']
const blank = heldIn(issuerFields, undefined)
/** By what the field holds. */
export const sharedAnswers = { '': 'Not answered', false: 'No', true: 'Yes' }

/** @typedef {ReturnType<typeof createIssuerEdit>} IssuerEdit */

/** @param {Page} page @param {string} [id] none for a new issuer */
function createIssuerEdit(page, id) {
  const testSoon = debounce(() => test(edited), 600)
  const edit = createEdit(page, {
    what: 'issuer',
    path: issuersPath,
    ...(id === undefined ? {} : { self: `${issuersPath}/${segment(id)}` }),
    blank,
    valuesOf: (issuer) => heldIn(issuerFields, issuer),
    bodyOf: (values) => bodyOf(values, id === undefined),
    numbers: numbersIn(issuerFields, id === undefined),
    onChange: (name) => {
      // An answer is about one issuer URL.
      if (name === 'issuer_url') edited.draft.values.shared = ''
      if (name === '' || tested.includes(String(name))) testSoon()
    },
  })
  const edited = Object.assign(edit, {
    id,
    /** @type {Verification | undefined} */
    preview: undefined,
    /** @type {unknown} */
    testFailure: undefined,
    turn: 0,
  })
  return edited
}

/** @param {IssuerEdit} edited */
const openIssuer = (edited) => (edited.isNew ? begin(edited, seeded(edited)) : openEdit(edited))

/** What the address names: the issuer URL of a token that somebody pasted, or the card of a platform. @param {IssuerEdit} edited */
function seeded({ page: { query } }) {
  const { url: pasted = '', platform = guessPlatform(pasted) } = query
  const { label = '', host } = (Object.hasOwn(platforms, platform) && platforms[platform]) || {}
  const issuer_url = pasted || (host === undefined ? '' : `https:/${'/'}${host}`)
  return { ...blank, issuer_url, name: label === 'Other' ? '' : label }
}

/** As the API takes it. A new issuer is found by discovery where nothing else is said. @param {IssuerValues} values @param {boolean} isNew */
function bodyOf(values, isNew) {
  const { source, jwks_url, jwks: _text, keys_expire_at, page_secret, ...rest } = sentFrom(issuerFields, values)
  // One that is not used any more goes.
  const body = { ...rest, page_secret: values.page_authentication === 'secret' ? page_secret : null }
  if (source === 'jwks_url') return { ...body, jwks_url }
  if (source === 'jwks') return { ...body, jwks: parseKeySet(values.jwks), keys_expire_at }
  return { ...body, discovery: isNew ? null : true }
}

/** @param {string} text */
function parseKeySet(text) {
  try {
    return JSON.parse(text)
  } catch {
    throw asProblem(new Error('The key set is not JSON: paste the whole document'))
  }
}

/** @param {IssuerEdit} edited */
async function test(edited) {
  const turn = ++edited.turn
  const { issuer_url, source, jwks } = edited.draft.values
  /** @type {{ preview?: Verification | undefined, testFailure?: unknown }} */
  let result = { preview: undefined, testFailure: undefined }
  const isEmptySet = source === 'jwks' && jwks.trim() === ''
  if (/^https?:\/\/./.test(issuer_url) && !isEmptySet)
    try {
      const {
        ca_pem,
        jwks_url,
        jwks: keySet,
      } = /** @type {Record<string, unknown>} */ (bodyOf(edited.draft.values, true))
      const asked = { issuer_url, jwks_url, jwks: keySet, ca_pem: ca_pem ?? undefined }
      result.preview = (await send('POST', `${issuersPath}/verify`, asked)).data
    } catch (testFailure) {
      result = { preview: undefined, testFailure }
    }
  if (turn !== edited.turn) return
  Object.assign(edited, result)
  edited.page.update()
}

/** The form of the policy that needs the issuer. @param {string} policy */
const formOf = (policy) => ['policies', ...(policy === 'new' ? ['new'] : [policy, 'edit'])]

/** @param {IssuerEdit} edited */
const save = (edited) =>
  saveEdit(edited, (response) => {
    forgetFindings()
    notify(
      'ok',
      edited.isNew ? 'The issuer was added' : response === undefined ? 'Nothing was changed' : 'The issuer was saved',
    )
    const id = response?.data.id ?? edited.id
    const { then, policy } = edited.page.query
    if (then === 'start') return go(['start'])
    if (policy !== undefined) return go(formOf(policy), { issuer: id })
    go(['issuers', id])
  })

/** @param {Page} page @param {string} [id] */
export function issuerForm(page, id) {
  const edited = createIssuerEdit(page, id)
  page.title(id === undefined ? 'Add issuer' : 'Edit issuer')
  page.poll(async () => {
    if (!edited.isReady) await openIssuer(edited)
  }, 86_400)
  return () => {
    if (!page.may('issuers.add')) return mayNot(page, 'issuers.add')
    if (!edited.isReady) return loading()
    const { draft, busy } = edited
    const onSubmit = () => void save(edited)
    return html`${planNotice(page)}<div class="columns">
      <section class="card">
        ${trouble(edited, onSubmit, async () => openIssuer(edited))}
        ${form(
          {
            onSubmit,
            submit: id === undefined ? 'Add issuer' : 'Save',
            busy,
            disabled: draft.values.name === '' || draft.values.issuer_url === '',
            cancel: href(cancelTo(edited)),
            extra: unsavedMark(edited),
          },
          fields(edited),
        )}
      </section>
      <aside class="stack" aria-label="Test">${preview(edited)}</aside>
    </div>`
  }
}

/** @param {IssuerEdit} edited */
function cancelTo({ id, page }) {
  const { policy } = page.query
  if (policy !== undefined) return formOf(policy)
  return id === undefined ? ['issuers'] : ['issuers', id]
}

/** How to find the issuer URL of a platform. @param {string | undefined} platform */
function urlOf(platform = '') {
  const { url } = (Object.hasOwn(platforms, platform) && platforms[platform]) || {}
  return url === undefined ? nothing : html`${inline(url)}. `
}

/** @param {IssuerEdit} edited */
function fields(edited) {
  const { id, draft } = edited
  const { values, field } = draft
  const take = (/** @type {string} */ name, /** @type {string} */ host) => {
    values.name ||= name
    draft.set('issuer_url')(`https:/${'/'}${host}`)
  }
  return html`${id === undefined ? html`<div class="actions">Fill in for ${Object.entries(platforms).flatMap(([name, { label, host }]) => (host === undefined ? [] : [html`<button type="button" @click=${() => take(name, host)}>${label}</button>`]))}</div>` : nothing}
    ${field('name', 'Name', { help: 'A label for lists and commands' })}
    ${field('issuer_url', 'Issuer URL', { type: 'url', mono: true, help: html`${urlOf(id === undefined ? edited.page.query.platform : undefined)}The claim <code>iss</code> of the tokens, character for character` })}
    ${choice({ label: 'Where its keys come from', name: 'source', value: values.source, options: Object.entries(sources), onInput: draft.set('source') })}
    ${values.source === 'jwks_url' ? field('jwks_url', 'JWKS URL', { type: 'url', mono: true }) : nothing}
    ${values.source === 'jwks' ? field('jwks', 'Key set (JWKS)', { rows: 6, mono: true, help: html`For a server that cannot reach the issuer. Kubernetes: <code>kubectl get --raw /openid/v1/jwks</code>` }) : nothing}
    ${values.source === 'jwks' ? control(edited, ['keys_expire_at', issuerFields.keys_expire_at]) : nothing}
    ${choice({ label: 'Can strangers get its tokens?', name: 'shared', value: values.shared, options: Object.entries(sharedAnswers), onInput: draft.set('shared') })}
    <p class="muted">Yes if others than your organization can. Services that the <a href="#/manual/linter">linter</a> knows need no answer.</p>
    <details><summary>Sign-in of people with latchkey login</summary><div class="form">
      <div class="fields">
        ${issuerFieldList.filter(([, { place }]) => place === 'login').map((each) => control(edited, each))}
      </div>
    </div></details>
    <details><summary>Sign-in of people to this page</summary><div class="form">
      <p class="muted">Redirect URI: <code>${new URL('sign-in/callback', location.href.split('#')[0]).href}</code></p>
      <div class="fields">
        ${issuerFieldList.filter(([, { place }]) => place === 'page').map((each) => control(edited, each))}
        ${values.page_authentication === 'secret' ? control(edited, ['page_secret', issuerFields.page_secret]) : nothing}
      </div>
      ${asCommand('latchkey issuers update ISSUER --page-authentication secret --page-secret-file FILE', 'From a file, as a command')}
    </div></details>
    <details><summary>More: private CA, clock, longest token</summary><div class="form">
      ${field('ca_pem', 'CA certificates (PEM)', { rows: 4, mono: true, required: false, help: 'Only for an issuer with a private CA' })}
      <div class="fields">
        ${issuerFieldList.filter(([, { place }]) => place === 'more').map((each) => control(edited, each))}
      </div>
    </div></details>`
}

/** @param {IssuerEdit} edited */
function preview(edited) {
  const found = edited.preview
  return html`${heading('Test', html`<button type="button" @click=${() => edited.page.run(() => test(edited))}>Test now</button>`)}
    ${edited.testFailure === undefined ? nothing : problem(edited.testFailure)}${found === undefined ? html`<p class="muted">The server fetches the discovery document and the keys as an exchange would, and saves nothing.</p>` : html`${verified(found)}${found.keys.length > 0 ? keyTable(found.keys) : nothing}`}`
}

/** @param {Verification} result */
export function verified({ ok, checks, keys }) {
  return html`<div class="stack" role="status">
    ${callout(ok ? 'ok' : 'bad', ok ? `The issuer works: ${count(keys.length)} usable ${keys.length === 1 ? 'key' : 'keys'}.` : 'The issuer does not work yet. If the server cannot reach it, choose “Pasted key set”.')}
    ${table({
      label: 'Checks',
      rows: checks,
      columns: [
        {
          title: 'Check',
          isHeader: true,
          cell: (check) => html`${check.step}<br />${check.ok ? badge('ok', 'passed') : badge('bad', 'failed')}`,
        },
        { title: 'Detail', cell: ({ detail }) => stored(detail, 1_000) },
      ],
    })}
  </div>`
}

/** @param {Issuer['keys']} keys */
export function keyTable(keys) {
  return table({
    label: 'Keys',
    rows: keys,
    empty: empty('No keys yet', 'They are fetched with the first token, or when you test the issuer.'),
    columns: [
      { title: 'Key id (kid)', isHeader: true, cell: ({ kid }) => mono(kid) },
      { title: 'Algorithm', cell: ({ algorithm }) => algorithm },
    ],
  })
}
