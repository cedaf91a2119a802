// What the inference servers list at `/models`, kept for some seconds, so that callers cannot keep them busy with it. It knows no keys: what a
// caller may see of a list, its user decides.
import { Fault } from '../../fault.ts'
import { modelListMilliseconds } from '../../limits.ts'
import type { Upstream } from '../upstream/targets.ts'
import { type Model, modelsIn } from './model-list.ts'

/** An answer to `/models`, whole. */
export type ListResponse = { status: number; headers: Headers; body: Uint8Array<ArrayBuffer> }
export type ModelList = {
  answer: ListResponse
  /** @throws Fault `bad_gateway` when the answer is no list */
  models: () => Model[]
}

export type ModelLists = {
  /**
   * What this upstream lists, or listed a few seconds ago; a failure is kept as well. `ask` is called where nothing is. Unless it
   * `isShared`, it does not wait for a list that is still on its way, and what it gets is not kept for others.
   */
  listOf: (upstream: Upstream, ask: () => Promise<ModelList>, options: { isShared: boolean }) => Promise<ModelList>
}

/** An upstream that was changed is another value. */
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

/** Read once, however often it is shown. */
export function listIn(answer: ListResponse): ModelList {
  const models = answer.status === 200 ? modelsIn(answer.body) : undefined
  const reason = answer.status === 200 ? 'not a list' : `status ${answer.status}`
  return {
    answer,
    models: () => {
      if (models !== undefined) return models
      throw new Fault('bad_gateway', 'The inference server gave no list of models', { reason })
    },
  }
}
