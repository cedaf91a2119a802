// The transparent audit log: how large it is, what is signed and who has signed it too, with what an auditor takes away.
/** @import { AuditLog } from '../../admin/transport/response-types.ts' */
/** @import { Content, View } from '../types.ts' */
import { get } from './client.js'
import { download } from './download.js'
import { html, nothing } from './lit-html.js'
import { ago, at, callout, copyable, count, empty, facts, loading, mono, stored } from './parts.js'

/** @type {View} */
export const view = (page) => {
  /** @type {AuditLog | undefined} */
  let log
  if (page.may('audit.log'))
    page.poll(async () => {
      ;({ data: log } = await get('/installation/audit-log'))
    })
  return () => {
    if (!page.may('audit.log'))
      return empty('Not for this role', 'Auditors, operators and administrators see the audit log of the installation.')
    return log === undefined ? loading() : show(log)
  }
}

/** @param {AuditLog} log */
function show({
  mode,
  origin,
  entries,
  pruned,
  checkpoint_at: signedAt,
  checkpoint_size: size,
  note,
  cosigned,
  folder,
  failure,
  keys,
}) {
  if (mode === 'off')
    return empty('No audit log', 'LATCHKEY_AUDIT_LOG is off: nothing proves that rows were not changed.')
  const saveCheckpoint = () => download(`${size}.checkpoint`, note ?? '')
  const saveKeys = () => download('log.vkey', keys.map(({ verifier_key: key }) => `${key}\n`).join(''))
  return html`${failure === null ? nothing : callout('bad', html`It cannot be signed or published: ${stored(failure, 600)}`)}
    <section class="card">
      ${facts([
        [
          'Entries',
          pruned === 0
            ? count(entries)
            : `${count(entries)}, of which ${count(pruned)} were pruned: archives have their rows`,
        ],
        ['Checkpoint', signedAt === null ? 'none yet' : html`${count(size ?? 0)} entries, ${ago(signedAt)}`],
        [
          'Last cosigned',
          cosigned === null
            ? html`<span class="muted">never: no witness holds the log</span>`
            : html`by ${stored(cosigned.by.join(', '), 200)}: ${count(cosigned.size)} entries, ${ago(cosigned.at)}`,
        ],
        ['Covers', mode === 'full' ? 'exchanges, changes and daily usage' : 'changes, without exchanges'],
        ['Log', origin === null ? 'none yet' : mono(origin, 200)],
        ['Folder', folder === null ? html`<span class="muted">none</span>` : mono(folder, 300)],
        ...keys.map(
          ({ verifier_key: key, retired_at: retiredAt }) =>
            /** @type {[string, Content]} */ ([
              retiredAt === null ? 'Verifier key' : 'Former verifier key',
              html`${copyable(key, 'verifier key')}${retiredAt === null ? nothing : html` until ${at(retiredAt)}`}`,
            ]),
        ),
      ])}
      <div class="actions">${note === null ? nothing : html`<button type="button" @click=${saveCheckpoint}>Download checkpoint</button>`}
      ${keys.length === 0 ? nothing : html`<button type="button" @click=${saveKeys}>Download verifier keys</button>`}</div>
    </section>
    <p class="muted">Keep checkpoints on another machine, or let a witness sign them: <a href="#/manual/audit">how to use the audit log</a>. Proofs of single exchanges and changes are on their own views.</p>`
}
