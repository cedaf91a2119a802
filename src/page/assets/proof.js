// The button that downloads what proves an exchange, a request or a change to an auditor.
/** @import { Page } from '../types.ts' */
import { get } from './client.js'
import { download } from './download.js'
import { html, nothing } from './lit-html.js'

/** @param {Page} page @param {{ request_id: string } | { change_id: number }} row */
export function proofButton(page, row) {
  if (!page.may('audit.prove')) return nothing
  const [name] = Object.values(row)
  const prove = async () => {
    const { data } = await get('/workload-identity/audit/proof', row)
    download(`${name}.tlog-proof`, data.proof)
  }
  return html`<button type="button" @click=${() => page.run(prove)}>Download proof</button>`
}
