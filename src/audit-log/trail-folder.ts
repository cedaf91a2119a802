// A trail as a folder that an auditor carries away: `trail.json` says whose it is, `requests.ndjson` has the rows of the ledger, and there is
// one file for each proof, with a page to read and a text on how to check.
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { checkTrail, type TrailCheck } from './trail.ts'
import { parseHead, parseRequest, type Trail, type TrailHead } from './trail-format.ts'
import { exchangeFileOf, renderTrail } from './trail-page.ts'
import type { VerifierKey } from './transparency/note.ts'
import { parseProof } from './transparency/proof.ts'

const headFile = 'trail.json'
const requestsFile = 'requests.ndjson'
const pageFile = 'index.html'
const folders = ['exchanges', 'changes', 'days', 'erasures'] as const

type Proofs = Record<(typeof folders)[number], string[]>

/** Reports whether a folder has a trail. */
export async function isTrail(folder: string): Promise<boolean> {
  const names: string[] = await readdir(folder).catch(() => [])
  return names.includes(headFile)
}

/**
 * Writes a trail into a folder that has nothing yet, and returns what its check says with the keys of the log.
 * @throws Error if the folder has files, or cannot be written
 */
export async function writeTrail(
  folder: string,
  { head, ...unsorted }: Trail,
  keys: readonly VerifierKey[],
): Promise<TrailCheck> {
  await mkdir(folder, { recursive: true })
  if ((await readdir(folder)).length > 0) throw new Error('the folder is not empty')
  const trail = { ...unsorted, head, ...sorted(unsorted) }
  const check = checkTrail(trail, keys)
  const files: [path: string, text: string][] = [
    [headFile, `${JSON.stringify(head, null, 2)}\n`],
    [requestsFile, trail.requests.map((request) => `${JSON.stringify(request)}\n`).join('')],
    [pageFile, renderTrail(head, check)],
    ['HOW-TO-CHECK.txt', howToCheck(head)],
    ...folders.flatMap((kind) => trail[kind].map((text): [string, string] => [fileOf(kind, text, check), text])),
  ]
  for (const [path, text] of files) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), text, { flag: 'wx' })
  }
  return check
}

/** In the order of the log. */
function sorted(proofs: Proofs): Proofs {
  const byIndex = (one: string, other: string) => indexOf(one) - indexOf(other)
  return Object.fromEntries(folders.map((kind) => [kind, proofs[kind].toSorted(byIndex)])) as Proofs
}

function indexOf(text: string): number {
  return parseProof(text)?.index ?? 0
}

function fileOf(kind: (typeof folders)[number], text: string, { exchanges }: TrailCheck): string {
  const index = indexOf(text)
  const exchange = kind === 'exchanges' ? exchanges.find((each) => each.index === index) : undefined
  return exchange === undefined ? `${kind}/${index}.tlog-proof` : exchangeFileOf(exchange)
}

/**
 * Checks a trail in a folder with the keys alone, its page included.
 * @throws Fault `invalid`, or a SyntaxError, for a folder with other files
 */
export async function checkTrailFolder(
  folder: string,
  keys: readonly VerifierKey[],
  witnessKeys: readonly VerifierKey[] = [],
): Promise<TrailCheck & { head: TrailHead }> {
  const head = parseHead(await readFile(join(folder, headFile), 'utf8'))
  const lines = (await readFile(join(folder, requestsFile), 'utf8')).split('\n').filter((line) => line !== '')
  const proofs = Object.fromEntries(
    await Promise.all(folders.map(async (kind) => [kind, await readProofs(join(folder, kind))] as const)),
  ) as Proofs
  const check = checkTrail({ head, ...sorted(proofs), requests: lines.map(parseRequest) }, keys, witnessKeys)
  if ((await readFile(join(folder, pageFile), 'utf8')) !== renderTrail(head, check))
    check.problems.push('index.html does not show what the proofs say')
  return { ...check, head }
}

async function readProofs(folder: string): Promise<string[]> {
  const names: string[] = await readdir(folder).catch(() => [])
  return Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')))
}

function howToCheck({ subject, issuer_url, origin }: TrailHead): string {
  return `How to check this folder
========================

It has everything that the audit log
  ${origin}
has of the subject
  ${subject}
of the issuer
  ${issuer_url}

You need two things that are not in this folder:
- the program: any Latchkey that you trust, which is one file. It needs no server, no database and no network.
- the verifier key of the log. Get it from somebody else than this folder. It begins with the name of the log above.

1. Check the folder. KEY is the verifier key, or a file that has it. Run this within the folder:

     latchkey audit verify . --verifier-key KEY

   A check mark and exit code 0: every exchange, request and change that index.html shows is in the log, as it was written, and the
   tokens and the cost in the second line are their sum. A cross and exit code 1: the lines below say what differs.
   These lines are no errors:
   - "more requests are of days that have not ended": they are in index.html as "not yet", and not in the sum. Ask for the folder again
     when the day has been over (UTC) for 15 minutes.
   - "requests used access tokens whose exchanges are not in this trail": those exchanges are of an earlier time, or in an archive.
   - "a key made more requests than this trail has": other subjects use the same key, or requests were left out. index.html has the days.
2. Open index.html in a browser. It has no script. The first step has compared it with the proofs. To follow a request from its identity to
   its cost: its access token leads to the exchange above, which names policy and key, and each of the two has its changes.
3. To see that the log did not change later, keep the checkpoint at the end of any .tlog-proof file: the lines after the empty one. Compare
   it with the log, of which you get a folder too:

     latchkey audit verify LOG-FOLDER --verifier-key KEY --against CHECKPOINT

What is what
------------
exchanges/     an exchange of a token of the subject for an access token, or its refusal
changes/       the changes by administrators that made the issuer, its policies and their keys what they were
days/          the totals of a closed day, with the root of a tree that has every request of the day
erasures/      what says that rows of such a day were erased later
requests.ndjson  the requests, one on a line: the row, and the hashes that lead to the root of its day

Each .tlog-proof is a C2SP tlog-proof: the manual page "audit" of Latchkey says how to check one with other programs.
`
}
