// The types that the modules of the page share. The page reads them in JSDoc; nothing of this file is sent to a browser.
import type { TemplateResult } from 'lit-html'
import type { Act } from '../keys/roles.ts'

export type { Act } from '../keys/roles.ts'
export type { Block } from '../manual/markdown.ts'

/** What a template can contain. */
export type Content = TemplateResult | string | number | Node | symbol | null | undefined | readonly Content[]

/** Who is signed in (`GET /admin/session`). */
export type Session = {
  id?: string
  organization: { id: string; name: string; plan: string; workload_identity: boolean }
  workspace: { id: string; name: string }
  key: { id: string; name: string }
  person: { name: string; issuer_url: string; subject: string; policy_id: string; policy_name: string | null } | null
  role: string | null
  may: readonly string[]
  needs: Readonly<Partial<Record<Act, string>>>
  expires_at: string
}

/** A failed call. `message` is a sentence without a full stop. `status` is 0 where no response arrived. `field`: of the body, which was refused; `fields`: what is wrong at each. */
export type Problem = Error & {
  status: number
  requestId: string | null
  field: string | null
  fields: Readonly<Record<string, string>>
}

/** What somebody typed. */
export type Work = { isUnsaved: () => boolean; discard: () => void }

/** What a view gets when it opens. It is closed when the path of the hash changes; a changed query keeps it open. */
export type Page = {
  /** The segments after the name of the view: `#/policies/ID` has `['ID']`. */
  readonly path: readonly string[]
  /** The query of the hash, now. */
  readonly query: Readonly<Record<string, string>>
  readonly session: Session
  /** Whether the role of the session may do it. Otherwise, show no button for it. */
  may: (act: Act) => boolean
  /** Whether something that the view polls failed the last time; the page shows it, and tries again every few seconds. */
  hasFailed: () => boolean
  /** Renders the view again, once per frame. */
  update: () => void
  /** Replaces the title of the view. */
  title: (text: string) => void
  /** Names what this view is a part of, such as the policy that it edits, for the breadcrumb. */
  within: (name: string) => void
  /** Changes the query of the hash without a new history entry; an empty value removes a name. */
  setQuery: (changes: Record<string, string>) => void
  /**
   * Runs `load` now, soon after each administrative change, and every `seconds` (default 30), while the page is visible and the view open;
   * then renders. Use fewer seconds for what changes without the user, such as exchanges.
   */
  poll: (load: () => Promise<void>, seconds?: number) => void
  /** Runs all polls now. */
  refresh: () => Promise<void>
  /** Runs work that somebody started; a failure is shown as a notice. Returns whether it succeeded. */
  run: (work: () => Promise<void>) => Promise<boolean>
  /** Names what would be lost: `isUnsaved` is asked before the view closes, and `discard` is called when somebody gives it up. */
  guard: (work: Work) => void
  /** Is called when the view closes. */
  onClose: (close: () => void) => void
}

/** A view: opens with a page and returns what renders it. */
export type View = (page: Page) => () => Content

/** A column of a table. */
export type Column<Row> = {
  title: string
  cell: (row: Row) => Content
  /** `end` for numbers. */
  align?: 'end'
  /** The cell that names the row: a row header. A click on the row opens the first link in it. */
  isHeader?: true
  /** What rows are sorted by when somebody clicks the title. */
  value?: (row: Row) => string | number | null | undefined
}

export type Tone = 'ok' | 'warn' | 'bad' | 'info' | 'off'

/** A page with what only the entry calls. */
export type OwnedPage = Page & {
  show: (template: () => Content) => void
  /** What was typed and not saved. */
  work: () => Work | undefined
  /** Stops and continues polling, while nobody is signed in. */
  pause: () => void
  resume: () => void
  close: () => void
  queryChanged: () => void
}
