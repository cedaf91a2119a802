// Rotation of a key: asks how long the old secret still works.
/** @import { Key } from '../../admin/transport/response-types.ts' */
import { segment, send } from './client.js'
import { openDialog } from './dialog.js'
import { field } from './form.js'
import { html, nothing } from './lit-html.js'
import { stored } from './parts.js'

/** @type {[string, string][]} */
const graces = [
  ['0', 'none: it ends at once'],
  ['3600', '1 hour'],
  ['86400', '1 day'],
  ['604800', '7 days'],
  ['2592000', '30 days'],
]

/** The answer of the server; undefined if somebody canceled. @param {Key} key @returns {Promise<{ data: Key, key: string } | undefined>} */
export async function rotateKey(key) {
  let grace = '86400'
  const choose = (/** @type {string} */ value) => {
    grace = value
  }
  const { closed } = openDialog(
    'Rotate this key?',
    (close) =>
      html`<div class="body">
          <p>${stored(key.name, 120)} gets a new secret, which is shown once. Its budgets, policies and usage stay.${key.kind === 'inference' ? nothing : ' Who is signed in with it is signed out everywhere.'}</p>
          ${field({ label: 'The old secret works for', name: 'grace', value: grace, options: graces, onInput: choose })}
        </div>
        <div class="buttons">
          <button type="button" class="primary" @click=${() => close('yes')}>Rotate key</button>
          <button type="button" @click=${() => close()}>Cancel</button>
        </div>`,
  )
  if ((await closed) !== 'yes') return undefined
  return send('POST', `/keys/${segment(key.hash)}/rotate`, { grace_seconds: Number(grace) })
}
