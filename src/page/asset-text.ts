// What a browser gets of a file of the page: the same text without comments, indentation and some line breaks, which are a
// quarter of it. It is no build step: the files also run as they lie in the repository.

const docComment = /\/\*\*? (?:(?!\*\/)[\s\S])*\*\/ ?/g
const lineComment = /^\s*\/\/.*\n/gm
const indentation = /^\s+/gm
/** Line breaks inside brackets, which separate nothing. */
const bracketBreak = /(?<=[({[])\n|\n(?=[)}\]])/g
const cssGap = /\s*([{};,>])\s*|(?<=:)\s+/g

/**
 * The text of a style sheet or module. Inside a string that counts white space, no line starts with `//` or a space, and
 * none has a bracket at the break.
 */
export function withoutComments(text: string): string {
  return text
    .replaceAll(docComment, '')
    .replaceAll(lineComment, '')
    .replaceAll(indentation, '')
    .replaceAll(bracketBreak, '')
}

const imported = /\bfrom ?['"]\.\/([\w-]+\.js)['"]/g

/** The modules that some need to run, these first. */
export function modulesOf(names: readonly string[], texts: ReadonlyMap<string, string>): ReadonlySet<string> {
  const found = new Set(names)
  // A set that grows is read to its end.
  for (const name of found) for (const [, next = ''] of (texts.get(name) ?? '').matchAll(imported)) found.add(next)
  return found
}

/** A style sheet whose strings have no punctuation, without white space that separates nothing. */
export function squeezedCss(text: string): string {
  return withoutComments(text).replaceAll(cssGap, '$1')
}
