// Patterns of names of models and presets: `*` stands for any run of characters, everything else for itself.

export type Patterns = (name: string) => boolean

/** Whether a name fits one of the patterns. Each is matched in one pass, so that no pattern makes a request slow. */
export function compilePatterns(patterns: readonly string[]): Patterns {
  const compiled = patterns.map((pattern) => pattern.split('*'))
  return (name) => compiled.some((parts) => fits(name, parts))
}

function fits(name: string, parts: string[]): boolean {
  const first = parts[0] ?? ''
  const last = parts.at(-1) ?? ''
  if (parts.length === 1) return name === first
  if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length) return false
  let at = first.length
  for (const part of parts.slice(1, -1)) {
    const found = name.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return at <= name.length - last.length
}
