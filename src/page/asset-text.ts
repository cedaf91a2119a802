// What a browser gets of a file of the page: the same text without comments and indentation, which are a quarter of it. It is no build
// step: the files also run as they lie in the repository.

const docComment = /\/\*\*? (?:(?!\*\/)[\s\S])*\*\/ ?/g
const lineComment = /^\s*\/\/.*\n/gm
const indentation = /^\s+/gm
const cssGap = /\s*([{};,>])\s*|(?<=:)\s+/g

/** The text of a style sheet or module that starts no line inside a string with `//` or white space that counts. */
export function withoutComments(text: string): string {
  return text.replaceAll(docComment, '').replaceAll(lineComment, '').replaceAll(indentation, '')
}

/** A style sheet whose strings have no punctuation, without white space that separates nothing. */
export function squeezedCss(text: string): string {
  return withoutComments(text).replaceAll(cssGap, '$1')
}
