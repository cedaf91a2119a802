// Patterns of model names: `*` stands for any run of characters, everything else for itself.

export type ModelPatterns = (model: string) => boolean

/** Whether a model fits one of the patterns. Each is matched in one pass, so that no pattern makes a request slow. */
export function compileModelPatterns(patterns: readonly string[]): ModelPatterns {
  const compiled = patterns.map((pattern) => pattern.split('*'))
  return (model) => compiled.some((parts) => fits(model, parts))
}

function fits(model: string, parts: string[]): boolean {
  const first = parts[0] ?? ''
  const last = parts.at(-1) ?? ''
  if (parts.length === 1) return model === first
  if (!model.startsWith(first) || !model.endsWith(last) || model.length < first.length + last.length) return false
  let at = first.length
  for (const part of parts.slice(1, -1)) {
    const found = model.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return at <= model.length - last.length
}
