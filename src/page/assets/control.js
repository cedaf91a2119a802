// The control of a field by its entry in the table of its kind.
/** @import { Edit } from './edit.js' */
/** @import { FormField } from './fields.js' */
import { numberField } from './edit.js'
import { checkbox } from './form.js'
import { inline } from './markdown.js'

const sizes = {
  lines: { rows: 2, mono: true },
  pairs: { rows: 2, mono: true },
  json: { rows: 6, mono: true },
  secret: { type: 'password' },
  time: { type: 'datetime-local' },
}

/** @template {Record<string, any>} V @param {Edit<V>} edited @param {readonly [name: string & keyof V, field: FormField]} entry */
export function control(edited, [name, { form, label = name, help, options, isNeeded }]) {
  const { draft, kind } = edited
  const about = help && inline(help)
  if (form === 'number' || form === 'money')
    return numberField(edited, name, label, {
      help: about,
      ...(kind.numbers?.[name]?.isRequired ? {} : { required: false }),
    })
  if (form === 'flag')
    return checkbox({
      ...{ label, name, checked: draft.values[name] === true, help: about },
      onInput: (checked) => draft.set(name)(/** @type {any} */ (checked)),
    })
  if (options !== undefined) return draft.field(name, label, { options, help: about })
  const size = /** @type {Record<string, object>} */ (sizes)[form]
  return draft.field(name, label, { ...(isNeeded ? {} : { required: false }), ...size, help: about })
}
