// What was typed and not saved, kept for this tab until it is saved, discarded or signed out. It belongs to the key that was signed
// in, so that nobody else who signs in here reads it. What looks like a secret is never kept.

const prefix = 'latchkey draft '
/** Private keys (PEM, JWK), API keys and tokens. Fields for others have names that end so. */
const secret = /PRIVATE KEY|"[dk]"\s*:|\bsk-|\beyJ[\w-]+\./

/** @param {string} name @param {object} draft */
export function keepDraft(name, draft) {
  const withoutSecrets = (/** @type {string} */ name, /** @type {unknown} */ value) =>
    typeof value === 'string' && (secret.test(value) || name.endsWith('_secret')) ? undefined : value
  try {
    sessionStorage.setItem(prefix + name, JSON.stringify(draft, withoutSecrets))
  } catch {
    // Without space, the text is only in the form.
    forgetDraft(name)
  }
}

/** @param {string} name @returns {any} */
export function readDraft(name) {
  const text = sessionStorage.getItem(prefix + name)
  return text === null ? undefined : JSON.parse(text)
}

/** @param {string} name */
export function forgetDraft(name) {
  sessionStorage.removeItem(prefix + name)
}

/** For who signs out. */
export function forgetDrafts() {
  for (const name of Object.keys(sessionStorage)) if (name.startsWith(prefix)) sessionStorage.removeItem(name)
}
