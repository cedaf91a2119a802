// Patterns for names of models and presets: `*` matches any characters, every other character itself.

export type Patterns = (name: string) => boolean

/** Compiles patterns into a function that says whether a name matches one of them. Each takes one pass, so no pattern is slow. */
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
