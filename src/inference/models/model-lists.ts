// The lists of models, kept for a few seconds so that callers cannot overload the inference servers. Which models a
// caller may see is decided elsewhere.
import { modelListMilliseconds } from '../../limits.ts'
import type { Upstream } from '../upstream/targets.ts'
import { listFailed, type Model, modelsIn } from './model-list.ts'

/** A whole response to `/models`. */
export type ListResponse = { status: number; headers: Readonly<Record<string, string>>; body: Uint8Array<ArrayBuffer> }
export type ModelList = {
  response: ListResponse
  /** @throws Fault `bad_gateway` when the response is not a list */
  models: () => Model[]
}

export type ModelLists = {
  /**
   * The list of this upstream, at most a few seconds old; failures are kept as well. `ask` is called when nothing is
   * kept. Unless `isShared`, it does not wait for a request in progress, and its result is not kept.
   */
  listOf: (upstream: Upstream, ask: () => Promise<ModelList>, options: { isShared: boolean }) => Promise<ModelList>
}

/** Keyed by the immutable value of an upstream: an edit makes a new value. */
export function createModelLists(monotonic: () => number): ModelLists {
  const kept = new WeakMap<Upstream, { list: Promise<ModelList>; freshUntil: number | undefined }>()
  return {
    listOf: (upstream, ask, { isShared }) => {
      const known = kept.get(upstream)
      if (known !== undefined && (known.freshUntil === undefined ? isShared : monotonic() < known.freshUntil))
        return known.list
      if (!isShared) return ask()
      const entry = { list: ask(), freshUntil: undefined as number | undefined }
      kept.set(upstream, entry)
      const keep = () => {
        entry.freshUntil = monotonic() + modelListMilliseconds
      }
      entry.list.then(keep, keep)
      return entry.list
    },
  }
}

/** Parses a response once, however often it is shown. */
export function listIn(response: ListResponse): ModelList {
  const models = response.status === 200 ? modelsIn(response.body) : undefined
  const detail = response.status === 200 ? 'not a list' : `status ${response.status}`
  return {
    response,
    models: () => {
      if (models !== undefined) return models
      throw listFailed('did not return a list of models', { detail })
    },
  }
}
