// Rotation of an API key: a new text for the same key, whose history, budgets and policies stay. The text before works until its grace ends.
import { updateApiKey } from '../../../db/tables/api-keys.ts'
import { dropLastUses } from '../../../db/tables/last-uses.ts'
import { Fault } from '../../fault.ts'
import { createApiKeyText, hashApiKey, isPinned, labelApiKey } from '../../keys/api-key.ts'
import { graceSecondsDefault, graceShape } from '../../keys/key-shapes.ts'
import { rejectAbove } from '../../keys/roles.ts'
import { type } from '../../values/shape.ts'
import { referenceShape } from '../../values/shapes.ts'
import { commit } from '../operation/commit.ts'
import { operation } from '../operation/operation.ts'
import { findKey, findOrganization, organizationInput } from '../operation/references.ts'
import { type KeyContext, showKey } from './keys.ts'

const rotateInput = type({
  '+': 'reject',
  ...organizationInput,
  key: referenceShape,
  'grace_seconds?': graceShape,
})

export const keyRotationOperations = { 'keys.rotate': operation(rotateInput, rotate, { mutates: true }) }

/**
 * The new text is shown once. A text that a rotation before left in its grace ends at once.
 * @throws Fault `invalid` for a key whose hash was pinned: who made it has its text
 */
async function rotate(context: KeyContext, input: typeof rotateInput.infer) {
  const { orm, registry, now } = context
  const key = findKey(registry, input.key, findOrganization(registry, input.organization).id)
  rejectAbove(context.role, key)
  if (isPinned(key))
    throw new Fault(
      'invalid',
      `The key ${JSON.stringify(key.name)} was made elsewhere: make a new one there, and name its hash in the document`,
    )
  const text = createApiKeyText()
  const at = now()
  const fields = {
    ...{ hash: hashApiKey(text), label: labelApiKey(text), updatedAt: at },
    ...{ previousHash: key.hash, previousUntil: at + (input.grace_seconds ?? graceSecondsDefault) * 1_000 },
  }
  // Uses of a text are noted only while there are two.
  const forgotten = dropLastUses([key.previousHash, key.hash])
  await commit(context, [updateApiKey(orm, key.id, fields), forgotten], [{ kind: 'key', id: key.id }])
  return { ...(await showKey(context, key.id)), key: text }
}
