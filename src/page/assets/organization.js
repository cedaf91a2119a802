// The organization: its plan, what it records, its workspaces; and for the organization that the installation was set up with, all organizations with
// their plans.
/** @import { Organization, Workspace } from '../../admin/transport/response-types.ts' */
/** @import { Content, Page, View } from '../types.ts' */
import { asProblem, get, segment, send } from './client.js'
import { doWanted } from './details.js'
import { confirm, openDialog } from './dialog.js'
import { editor } from './editor.js'
import { field, form } from './form.js'
import { organizationFields } from './installation-fields.js'
import { html, nothing } from './lit-html.js'
import { notify } from './notice.js'
import { ago, badge, button, copyable, facts, heading, loading, problem, select, stored } from './parts.js'
import { asCommand } from './remedies.js'
import { href } from './router.js'
import { table } from './table.js'

const path = '/organization'
/** @type {[string, string][]} */
const plans = [
  ['free', 'free'],
  ['business', 'business'],
  ['enterprise', 'enterprise'],
]

/** @type {View} */
export const view = (page) => {
  if (page.path[0] === 'edit')
    return editor(page, {
      ...{ what: 'organization', table: organizationFields, act: 'organizations.update', path, self: path },
      ...{ title: 'Edit organization', submit: 'Save', back: ['organization'] },
    })
  /** @type {Organization | undefined} */
  let organization
  /** @type {Workspace[]} */
  let workspaces = []
  /** Of the installation; undefined where the key is of another organization. @type {Organization[] | undefined} */
  let all
  page.poll(async () => {
    ;[{ data: organization }, { data: workspaces }, all] = await Promise.all([
      get(path),
      get('/workspaces'),
      get('/installation/organizations').then(({ data }) => data, ofOther),
    ])
    page.title(organization?.name ?? '')
    doWanted(page, { create_workspace: () => createWorkspace(page) })
  })
  return () =>
    organization === undefined
      ? loading()
      : html`${own(page, organization)}${workspaceList(page, workspaces)}${all === undefined ? nothing : organizationList(page, all)}`
}

/** @param {unknown} error */
function ofOther(error) {
  if (asProblem(error).status !== 403) throw error
  return undefined
}

/** @param {Organization} organization */
const planBadge = ({ plan, workload_identity: isEntitled }) => badge(isEntitled ? 'ok' : 'off', plan)

/** @param {Page} page @param {Organization} organization */
function own(page, organization) {
  const { id, record_claims, time_zone, budget_headers, upstream_headers, created_at } = organization
  const { label, options } = organizationFields.record_claims
  const edit = page.may('organizations.update')
    ? html`<a class="button" href=${href(['organization', 'edit'])}>Edit</a>`
    : nothing
  return html`<section class="card">${heading(planBadge(organization), edit)}
    ${facts([
      ['Id', copyable(id, 'id')],
      [label, options.find(([value]) => value === record_claims)?.[1]],
      ['Time zone', time_zone ?? 'UTC'],
      ['Callers see their budgets', budget_headers ? 'yes' : 'no'],
      ['Callers see the server', upstream_headers ? 'yes' : 'no'],
      ['Created', ago(created_at)],
    ])}
  </section>`
}

/** @param {Page} page @param {Workspace[]} rows */
function workspaceList(page, rows) {
  const add = page.may('workspaces.create') ? button(page, 'Create workspace', () => createWorkspace(page)) : nothing
  return html`<section class="stack">${heading('Workspaces', add)}
    <p class="muted">Keys, presets and budgets belong to a workspace. You are in ${stored(page.session.workspace.name, 80)}, which is that of your key.</p>
    ${table({
      label: 'Workspaces',
      rows,
      columns: [
        {
          title: 'Workspace',
          isHeader: true,
          cell: ({ id, name }) =>
            html`${stored(name, 120)} ${id === page.session.workspace.id ? badge('info', 'this one') : nothing}`,
        },
        { title: 'Created', cell: ({ created_at }) => ago(created_at) },
      ],
    })}
  </section>`
}

/** @param {Page} page */
async function createWorkspace(page) {
  let name = ''
  /** @type {unknown} */
  let failure
  const dialog = openDialog('Create workspace', (close) => {
    const onSubmit = async () => {
      try {
        await send('POST', '/workspaces', { name })
        close()
      } catch (error) {
        failure = error
        dialog.update()
      }
    }
    const onInput = (/** @type {string} */ text) => {
      name = text
      dialog.update()
    }
    return html`<div class="body">${failure === undefined ? nothing : problem(failure)}
      ${form({ onSubmit: () => void onSubmit(), submit: 'Create workspace', disabled: name.trim() === '' }, field({ label: 'Name', name: 'workspace', value: name, onInput, charactersMax: 128 }))}</div>`
  })
  await dialog.closed
  await page.refresh()
}

/** @param {Page} page @param {Organization[]} rows @returns {Content} */
function organizationList(page, rows) {
  const change = async (/** @type {Organization} */ row, /** @type {string} */ plan) => {
    const { id, name } = row
    const body = html`<p>${plan === 'free' ? html`New exchanges of ${stored(name, 80)} stop at once: workload identity is part of the plans business and enterprise.` : html`${stored(name, 80)} may exchange tokens.`}</p>`
    const isSure = await confirm({
      title: `Change the plan to ${plan}?`,
      body,
      action: 'Change plan',
      isDanger: plan === 'free',
    })
    if (isSure) {
      await send('POST', `/installation/organizations/${segment(id)}/plan`, { plan })
      notify('ok', 'The plan was changed')
    }
    await page.refresh()
  }
  const planOf = (/** @type {Organization} */ row) =>
    page.may('organizations.plan')
      ? select(`Plan of ${row.name.slice(0, 80)}`, row.plan, plans, (plan) => void page.run(() => change(row, plan)))
      : planBadge(row)
  return html`<section class="stack">${heading('All organizations')}
    <p class="muted">A key belongs to one organization, and the page shows that of your key. To see another one, sign in with a management key of it:</p>
    ${asCommand('latchkey admin open --organization ORGANIZATION')}
    ${table({
      label: 'All organizations',
      rows,
      columns: [
        {
          title: 'Organization',
          isHeader: true,
          cell: ({ id, name }) =>
            html`${stored(name, 120)} ${id === page.session.organization.id ? badge('info', 'this one') : nothing}`,
        },
        { title: 'Plan', cell: planOf },
        { title: 'Claims', cell: ({ record_claims }) => record_claims },
        { title: 'Created', cell: ({ created_at }) => ago(created_at) },
      ],
    })}
  </section>`
}
