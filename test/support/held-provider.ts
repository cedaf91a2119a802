// An identity provider that accepts connections and never answers, and time limits that the test lets pass.
import { spyOn } from 'bun:test'
import type { PeopleProvider } from './people-provider.ts'

/** Holds what is asked of the provider below a path. `pass` lets the time of these requests pass; `limits` has what it was, in milliseconds. */
export function holdProvider(provider: PeopleProvider, path: string): { limits: number[]; pass: () => Promise<void> } {
  const asked = Promise.withResolvers<void>()
  const limit = new AbortController()
  const limits: number[] = []
  provider.intercept = ({ url = '' }) => {
    if (url.startsWith(path)) asked.resolve()
    return url.startsWith(path)
  }
  const timeout = spyOn(AbortSignal, 'timeout').mockImplementation((milliseconds) => {
    limits.push(milliseconds)
    return limit.signal
  })
  return {
    limits,
    pass: async () => {
      await asked.promise
      limit.abort(new DOMException('The operation timed out.', 'TimeoutError'))
      timeout.mockRestore()
    },
  }
}
