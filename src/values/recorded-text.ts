// Texts of callers as the ledger has them. Budgets count by what the ledger has, so requests are compared in the same form.
import { withoutSecrets } from '../fault.ts'
import { storableText } from './bytes.ts'

/** Without secrets, and as the database returns it; null without a text. */
export function recordedText(text: string | null | undefined): string | null {
  return text === null || text === undefined ? null : storableText(withoutSecrets(text))
}
