// What a browser gets of a file of the page: the same text without comments and indentation, which are a quarter of it. It is no build
// step: the files also run as they lie in the repository.

const docComment = /\/\*\*? (?:(?!\*\/)[\s\S])*\*\/ ?/g
const lineComment = /^\s*\/\/.*\n/gm
const indentation = /^\s+/gm

/** The text of a style sheet or module that starts no line inside a string with `//` or white space that counts. */
export function withoutComments(text: string): string {
  return text.replaceAll(docComment, '').replaceAll(lineComment, '').replaceAll(indentation, '')
}
