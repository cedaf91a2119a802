// Words and phrases that no text of the project may use, each with its replacement: manual, READMEs, help, messages,
// comments and names of tests.

export type BannedPhrase = { pattern: RegExp; instead: string }

export const bannedPhrases: readonly BannedPhrase[] = [
  // Rare words and literal translations
  { pattern: /\b(?:tell|tells|told)\b/i, instead: 'report, say, show or name' },
  { pattern: /\b(?:is|are) none\b/i, instead: 'say what is missing: "has no …", "was not found"' },
  { pattern: /\b(?:is|are) no (?:such|more|longer there|obstacle)\b/i, instead: '"does not exist", "no longer"' },
  { pattern: /\bno such\b/i, instead: '"does not exist"' },
  { pattern: /\banew\b/i, instead: '"again"' },
  { pattern: /\bbesides\b/i, instead: '"also", "in addition"' },
  { pattern: /\bfor ever\b/i, instead: '"permanently", "never expires"' },
  { pattern: /\bat first\b(?! use)/i, instead: '"initially", or leave it out' },
  { pattern: /\band so on its way\b/i, instead: 'say what happens' },
  {
    pattern: /\bof (?:its|their|his) own\b(?! (?!and|or|is|are|at|in|on|by|for|with|that|which|to|from)[a-z])/i,
    instead: '"its own …" before the noun',
  },
  { pattern: /\bcomes? (?:to pass|round|around)\b|\bit comes to\b/i, instead: 'say what happens' },
  { pattern: /\b(?:is|are|was|were) to be\b/i, instead: '"must be", or the imperative' },
  {
    pattern: /\bmay be had\b|\bcan(?:not)? be had\b|\bto be had\b/i,
    instead: '"could not be fetched", "is available"',
  },
  { pattern: /\bstand(?:s|ing)? in (?:for|place of)\b/i, instead: '"replaces"' },
  { pattern: /\ball the same\b/i, instead: '"still", "nevertheless"' },
  { pattern: /\bby itself\b/i, instead: '"automatically"' },
  { pattern: /\bonly ever\b/i, instead: '"only"' },
  { pattern: /\bwhoever\b/i, instead: '"anyone who", or name the person' },
  { pattern: /\bof which there\b/i, instead: 'two sentences' },
  { pattern: /\bthrice\b/i, instead: '"three times"' },
  { pattern: /\blikewise\b/i, instead: '"also", "the same"' },
  { pattern: /\bin a circle\b/i, instead: '"loop"' },
  { pattern: /\bcosts? nothing that\b/i, instead: '"is not counted"' },
  { pattern: /\bchecked and forgotten\b|\bthen forgotten\b/i, instead: '"validated but not stored"' },
  { pattern: /\banother \w+ than\b/i, instead: '"a different …", or give the rule' },
  { pattern: /\bbroke(?:n)? (?:its|the) (?:answer|response) off\b/i, instead: '"closed the connection mid-response"' },
  { pattern: /\bwithout a word\b/i, instead: '"silently"' },
  { pattern: /\bhas the last word\b/i, instead: '"decides"' },
  { pattern: /\bat hand\b/i, instead: '"available"' },
  { pattern: /\b(?:Refused|Accepted|Stored|Kept|Counted|Allowed) (?:is|are)\b/, instead: 'subject first' },
  { pattern: /\bsome (?:milliseconds|seconds|minutes)\b/i, instead: 'a number' },
  { pattern: /\bmade for sites\b/i, instead: '"built for air-gapped sites"' },
  { pattern: /\bfound no more\b|\bno more(?! than)\b/i, instead: '"no longer", "hidden"' },
  { pattern: /\bwhat (?:there is|is there)\b/i, instead: 'name the thing' },
  { pattern: /\bsays? of (?:itself|themselves)\b/i, instead: '"describes", "documents"' },
  { pattern: /\b(?:is|are) on (?:the|its) (?:key's )?account\b/i, instead: '"is attributed to"' },
  { pattern: /\bwas to be done\b/i, instead: 'say what succeeded' },
  // British spelling
  { pattern: /\b(?:behaviou|honou|favou|colou|neighbou)r/i, instead: 'American spelling: -or' },
  {
    pattern: /\b(?:recogni|organi|authori|finali|normali|summari|serial?i|reali|minimi)s(?:e|es|ed|ing|ation)\b/i,
    instead: 'American spelling: -ize',
  },
  { pattern: /\b(?:cancell|labell|modell|travell)(?:ed|ing)\b/i, instead: 'American spelling: one l' },
  { pattern: /\b(?:licence|catalogue|grey|whilst|afterwards)\b/i, instead: 'American spelling' },
]

/**
 * Lists the banned phrases in a text, each with its replacement: `"told": use report, say, show or name`. Empty if
 * there are none.
 */
export function findBannedPhrases(text: string): string[] {
  return bannedPhrases.flatMap(({ pattern, instead }) => {
    const found = pattern.exec(text)?.[0]
    return found === undefined ? [] : [`"${found}": use ${instead}`]
  })
}
