// Who is signed in and why, and what the role may do.
/** @import { Content, Page, Session } from '../types.ts' */
import { html } from './lit-html.js'
import { badge, facts, heading, mono, stored } from './parts.js'
import { href } from './router.js'

/** The person, or the key where nobody signed in as a person. @param {Pick<Session, 'key' | 'person'>} session */
export function nameOf({ key, person }) {
  return person?.name ?? key.name
}

/** Whether it is the same person or key, with the same role. @param {Session | undefined} one @param {Session | undefined} other */
export function isSame(one, other) {
  return one?.key.id === other?.key.id && one?.role === other?.role && whoOf(one) === whoOf(other)
}

/** @param {Session | undefined} session */
export function whoOf(session) {
  return session?.person == null ? '' : `${session.person.issuer_url} ${session.person.subject}`
}

/** @param {Page} page */
export function you({ session }) {
  const { role, may } = session
  return html`<section class="card">${heading('You')}
    ${facts([['Signed in as', html`${stored(nameOf(session), 200)} ${badge('info', role ?? '')}`], ...reasons(session)])}
    <details><summary>What the role ${role} may do</summary>
      <p class="operations">${may.map((act) => html`<code>${act}</code> `)}</p>
      <p><a href="#/manual/roles">All roles</a></p>
    </details>
  </section>`
}

/** @param {Session} session @returns {[string, Content][]} */
function reasons({ person, key }) {
  if (person == null) return [['With', html`the key ${stored(key.name, 120)}`]]
  const { issuer_url, subject, policy_id, policy_name } = person
  const policy = html`<a href=${href(['policies', policy_id])}>${stored(policy_name ?? policy_id, 120)}</a>`
  return [
    ['By', html`${stored(issuer_url, 200)}, as ${mono(subject, 200)}`],
    ['Because of', html`the policy ${policy}, for the key ${stored(key.name, 120)}`],
  ]
}
