// Admin operations that read the manual: the topics, and the text of one.
import { Fault } from '../fault.ts'
import { topics } from '../manual/topics.ts'
import { type } from '../values/shape.ts'
import { referenceShape } from '../values/shapes.ts'
import { operation } from './operation/operation.ts'
import { organizationInput } from './operation/references.ts'

const listInput = type({ '+': 'reject', ...organizationInput })
const showInput = type({ '+': 'reject', ...organizationInput, topic: referenceShape })

export const manualResponse = type({ topic: 'string', title: 'string' }).configure({ title: 'ManualTopic' })
/** `text` is Markdown. */
export const topicResponse = type({ topic: 'string', title: 'string', text: 'string' }).configure({
  title: 'ManualText',
})

export const manualOperations = {
  'manual.list': operation(listInput, async () => ({
    data: [...topics].map(([topic, text]) => ({ topic, title: titleOf(text) })),
  })),
  'manual.show': operation(showInput, async (_context, { topic }) => {
    const text = topics.get(topic)
    if (text === undefined) throw new Fault('not_found', `The manual has no topic ${JSON.stringify(topic)}`)
    return { topic, title: titleOf(text), text }
  }),
}

/** Every topic begins with its title. */
function titleOf(text: string): string {
  return /^# (.+)$/m.exec(text)?.[1] ?? ''
}
