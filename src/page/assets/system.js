// System: version, backups, certificate, signing keys, the settings in effect, and who is signed in to this page.
/** @import { Archive, SignedIn, SigningKey, System } from '../../admin/transport/response-types.ts' */
/** @import { Content, Page, Tone, View } from '../types.ts' */
import { get, segment, send } from './client.js'
import { doWanted } from './details.js'
import { confirm } from './dialog.js'
import { html, nothing } from './lit-html.js'
import { notify } from './notice.js'
import { ago, at, badge, button, callout, count, facts, heading, loading, mono, stored } from './parts.js'
import { asCommand, deed } from './remedies.js'
import { table } from './table.js'
import { notInstallation } from './upstreams.js'
import { you } from './you.js'

const path = '/installation'
/** @type {Record<string, [Tone, string]>} */
const keyStates = {
  next: ['info', 'signs soon'],
  signing: ['ok', 'signs'],
  retiring: ['warn', 'retiring'],
  retired: ['off', 'retired'],
}

/** @type {View} */
export const view = (page) => {
  /** @type {System | undefined} */
  let system
  /** @type {SigningKey[]} */
  let keys = []
  /** @type {Archive[]} */
  let archives = []
  /** @type {SignedIn[] | undefined} */
  let sessions
  /** @type {Content} */
  let refused
  const load = async () => {
    ;({ data: sessions } = await get('/admin/sessions'))
    if (refused !== undefined) return
    try {
      ;[{ data: system }, { data: keys }, { data: archives }] = await Promise.all([
        get(path),
        get(`${path}/signing-keys`),
        get(`${path}/archives`, { limit: archivesShown }),
      ])
    } catch (error) {
      refused = notInstallation(error)
      return
    }
    doWanted(page, { backup: backUp, rotate })
  }
  page.poll(load)
  const backUp = async () => {
    const body = html`<p>A copy of the database is written to the folder of backups. Requests go on meanwhile.</p>`
    if (!(await confirm({ title: 'Back up now?', body, action: 'Back up' }))) return
    const { file } = (await send('POST', `${path}/backups`, {})).data
    notify('ok', `The backup is ${file}`)
    await load()
  }
  const rotate = async () => {
    const body = html`<p>A new key is published now and signs in about five minutes. Tokens that were issued stay valid, and no request fails.</p>
      <p>If a key may have leaked, revoke it instead, on the server: all tokens end at once.</p>${asCommand('latchkey signing-keys rotate --revoke')}`
    if (!(await confirm({ title: 'Rotate the signing key?', body, action: 'Rotate' }))) return
    await send('POST', `${path}/signing-keys/rotate`, {})
    notify('ok', 'The new key is published')
    await load()
  }
  const end = async (/** @type {SignedIn} */ { id, key_name, person, current }) => {
    const body = html`<p>The browser of ${stored(person?.name ?? key_name, 80)} is signed out at once.${current ? ' This is your own session.' : ''}</p>`
    if (!(await confirm({ title: 'End this session?', body, action: 'End session', isDanger: true }))) return
    await send('DELETE', `/admin/sessions/${segment(id)}`)
    notify('ok', 'The session has ended')
    await load()
  }
  const endAll = async () => {
    const body = html`<p>Every browser that is signed in to ${stored(page.session.organization.name, 80)} is signed out at once, this one too. Keys and access tokens keep working.</p>`
    if (!(await confirm({ title: 'Sign out everywhere?', body, action: 'Sign out everywhere', isDanger: true }))) return
    const rows = /** @type {SignedIn[]} */ ((await get('/admin/sessions')).data)
    for (const { id } of rows.toSorted((one, other) => Number(one.current) - Number(other.current)))
      await send('DELETE', `/admin/sessions/${segment(id)}`)
    await load()
  }
  return () => html`${you(page)}${refused ?? (system === undefined ? loading() : installation(page, system, keys, rotate, archives))}
    ${sessions === undefined ? nothing : sessionList(page, sessions, end, endAll)}
    <p><a href="#/manual/operating">How to operate the server</a>, <a href="#/manual/backup">backups</a>, <a href="#/manual/disaster">after a failure</a></p>`
}

const archivesShown = 20

/** @param {Page} page @param {System} system @param {SigningKey[]} keys @param {() => Promise<void>} rotate @param {Archive[]} archives */
function installation(page, system, keys, rotate, archives) {
  const { backup, tls, settings, nodes } = system
  return html`<div class="columns even">
      <section class="card">${heading('Server')}
        ${facts([
          ['Version', `Latchkey ${system.version}`],
          ['Database schema', count(system.schema)],
          ['Base URL', mono(system.base_url)],
          ['Started', html`${at(system.started_at)} (${ago(system.started_at)})`],
          ['Its clock', at(system.now)],
          ['Organizations', count(system.organizations)],
          ['Certificate', tls === null ? 'no TLS here' : html`${expiry(tls.expires_at)} expires ${at(tls.expires_at)}`],
        ])}
        ${tls?.failure ? callout('bad', html`The new certificate cannot be used: ${stored(tls.failure)}`) : nothing}
      </section>
      <section class="card">${heading('Backups', backup.folder === null ? nothing : deed(page, 'backup.create', ''))}${backups(backup)}</section>
    </div>
    ${nodes.length === 0 ? nothing : nodeTable(nodes)}${archiveList(archives)}
    <section class="stack">
      ${heading('Signing keys', page.may('signing_keys.rotate') ? button(page, 'Rotate', rotate) : nothing)}
      ${table({
        label: 'Signing keys',
        columns: [
          { title: 'Key id (kid)', isHeader: true, cell: ({ id }) => mono(id) },
          {
            title: 'State',
            cell: ({ state, revoked }) =>
              revoked ? badge('bad', 'revoked') : badge(...(keyStates[state] ?? ['off', state])),
          },
          { title: 'Signs since', cell: ({ active_at }) => at(active_at) },
          {
            title: 'Published until',
            cell: ({ retired_at }) => (retired_at === null ? html`<span class="muted">in use</span>` : at(retired_at)),
          },
        ],
        rows: keys,
      })}
    </section>
    ${
      settings === null
        ? nothing
        : html`<section class="card"><details><summary>Settings in effect</summary>${table({
            label: 'Settings in effect',
            columns: [
              { title: 'Setting', isHeader: true, cell: ([name]) => mono(name) },
              {
                title: 'Value',
                cell: ([, value]) => (value === null ? html`<span class="muted">not set</span>` : mono(value, 600)),
              },
            ],
            rows: Object.entries(settings),
          })}</details></section>`
    }`
}

/** @param {Archive[]} rows */
function archiveList(rows) {
  return html`<section class="stack">${heading('Archives')}
    ${table({
      label: 'Archives',
      columns: [
        { title: 'File', isHeader: true, cell: ({ folder, file }) => mono(`${folder}/${file}`, 200) },
        { title: 'Rows', cell: ({ kind, rows: number }) => `${count(number)} of ${kind}` },
        { title: 'From', cell: ({ from }) => at(from) },
        { title: 'To', cell: ({ to }) => at(to) },
        { title: 'State', cell: ({ state }) => badge(state === 'finished' ? 'ok' : 'info', state) },
      ],
      rows,
      empty: html`<p class="muted">Old exchanges and usage stay in the database. <a href="#/manual/retention">How to move them into files</a></p>`,
    })}
    ${asCommand('latchkey archive --help', 'Archive now, or verify the files, as a command')}
  </section>`
}

/** @param {System['nodes']} rows */
function nodeTable(rows) {
  return html`<section class="stack">${heading('Nodes')}
    ${table({
      label: 'Nodes',
      columns: [
        { title: 'Node', isHeader: true, cell: ({ name }) => stored(name, 120) },
        { title: 'State', cell: ({ live }) => (live ? badge('ok', 'reports') : badge('bad', 'silent')) },
        { title: 'Version', cell: ({ version }) => version },
        { title: 'Changes not seen yet', align: 'end', cell: ({ lag }) => count(lag) },
        { title: 'Last report', cell: ({ last_seen_at }) => ago(last_seen_at) },
      ],
      rows,
      key: ({ name }) => name,
    })}
  </section>`
}

/** @param {string} time */
function expiry(time) {
  const days = (Date.parse(time) - Date.now()) / 86_400_000
  return days < 0 ? badge('bad', 'expired') : days < 30 ? badge('warn', 'soon') : badge('ok', 'valid')
}

/** @param {System['backup']} backup */
function backups({
  folder,
  every_seconds: seconds,
  keep,
  failing,
  newest_at: newest,
  last_failure: failure,
  last_failure_at: failedAt,
  running,
}) {
  if (folder === null)
    return html`${callout('warn', 'No backups are made.')}<p>Set <code>LATCHKEY_BACKUP_DIR</code>: <a href="#/manual/backup">how backups work</a></p>`
  return html`${facts([
    ['State', failing ? badge('bad', 'fails') : running ? badge('info', 'running') : badge('ok', 'works')],
    ['Newest', ago(newest)],
    ['Folder', mono(folder, 400)],
    ['Every', `${count((seconds ?? 0) / 3_600)} hours, ${count(keep ?? 0)} are kept`],
  ])}
  ${failure === null ? nothing : html`<p class="muted">Failed ${ago(failedAt)}: ${stored(failure, 600)}</p>`}`
}

/** @param {Page} page @param {SignedIn[]} sessions @param {(session: SignedIn) => Promise<void>} end @param {() => Promise<void>} endAll */
function sessionList(page, sessions, end, endAll) {
  const action = (/** @type {SignedIn} */ session) =>
    button(
      page,
      'End',
      () => end(session),
      '',
      `End the session of ${(session.person?.name ?? session.key_name).slice(0, 100)}`,
    )
  return html`<section class="stack">${heading('Sessions of this page', page.may('sessions.end') ? button(page, 'Sign out everywhere', endAll, 'danger') : nothing)}
    ${table({
      label: 'Sessions of this page',
      columns: [
        {
          title: 'Who',
          isHeader: true,
          cell: ({ key_name, person, current }) =>
            html`${stored(person?.name ?? key_name, 120)} ${current ? badge('info', 'this one') : nothing}${person == null ? nothing : html`<div class="muted small">${stored(person.issuer_url, 80)}, policy ${stored(person.policy_name ?? person.policy_id, 80)}</div>`}`,
        },
        { title: 'Role', cell: ({ role }) => role },
        { title: 'Address', cell: ({ client_address }) => mono(client_address) },
        { title: 'Signed in', cell: ({ created_at }) => ago(created_at) },
        { title: 'Last used', cell: ({ used_at }) => ago(used_at) },
        { title: 'Ends', cell: ({ expires_at }) => at(expires_at) },
        ...(page.may('sessions.end') ? [{ title: '', align: /** @type {const} */ ('end'), cell: action }] : []),
      ],
      rows: sessions,
    })}
  </section>`
}
