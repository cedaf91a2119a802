// A trail as a folder that an auditor carries away: `trail.json` says whose it is, `requests.ndjson` has the rows of the ledger, and there is
// one file for each proof, with a page to read and a text on how to check.
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Fault } from '../fault.ts'
import { openRow } from './row-proof.ts'
import { checkTrail, type TrailCheck } from './trail.ts'
import {
  type ProofFile,
  type ProofFolder,
  parseHead,
  parseRequest,
  proofFolders,
  type TrailHead,
  type TrailRequest,
} from './trail-format.ts'
import { exchangeFileOf, findStaleParts, renderTrail } from './trail-page.ts'
import type { VerifierKey } from './transparency/note.ts'
import { parseProof } from './transparency/proof.ts'

const headFile = 'trail.json'
const requestsFile = 'requests.ndjson'
const pageFile = 'index.html'

/** A trail as it was collected: its proofs have no files yet. */
export type NewTrail = { head: TrailHead; requests: TrailRequest[] } & Record<ProofFolder, string[]>

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
  { head, requests, ...texts }: NewTrail,
  keys: readonly VerifierKey[],
): Promise<TrailCheck> {
  await mkdir(folder, { recursive: true })
  if ((await readdir(folder)).length > 0) throw new Error('the folder is not empty')
  const proofs = proofsOf((folder) => texts[folder].map((text) => ({ file: fileOf(folder, text), text })))
  const trail = { head, requests, ...proofs }
  const check = checkTrail(trail, keys)
  const files: [path: string, text: string][] = [
    [headFile, `${JSON.stringify(head, null, 2)}\n`],
    [requestsFile, trail.requests.map((request) => `${JSON.stringify(request)}\n`).join('')],
    [pageFile, renderTrail(head, check)],
    ['HOW-TO-CHECK.txt', howToCheck(head)],
    ...proofFolders.flatMap((folder) => proofs[folder].map(({ file, text }): [string, string] => [file, text])),
  ]
  for (const [path, text] of files) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), text, { flag: 'wx' })
  }
  return check
}

/** The proofs of each folder in the order of the log. */
function proofsOf(list: (folder: ProofFolder) => ProofFile[]): Record<ProofFolder, ProofFile[]> {
  const byIndex = (one: ProofFile, other: ProofFile) => indexOf(one.text) - indexOf(other.text)
  return Object.fromEntries(proofFolders.map((folder) => [folder, list(folder).toSorted(byIndex)])) as Record<
    ProofFolder,
    ProofFile[]
  >
}

function indexOf(text: string): number {
  return parseProof(text)?.index ?? 0
}

/** The file that has a proof: its content alone says so. */
function fileOf(folder: ProofFolder, text: string): string {
  const index = indexOf(text)
  const row = folder === 'exchanges' ? openRow(parseProof(text)?.extra)?.row : undefined
  if (row === undefined) return `${folder}/${index}.tlog-proof`
  const { request_id = '' } = JSON.parse(row) as { request_id?: string }
  return exchangeFileOf({ index, request_id: String(request_id) })
}

/**
 * Checks a trail in a folder with the keys alone, its page included.
 * @throws Fault `invalid` for a folder with other files
 */
export async function checkTrailFolder(
  folder: string,
  keys: readonly VerifierKey[],
  witnessKeys: readonly VerifierKey[] = [],
): Promise<TrailCheck & { head: TrailHead }> {
  const head = parsePart(headFile, await readPart(folder, headFile), parseHead)
  const lines = (await readPart(folder, requestsFile)).split('\n').filter((line) => line !== '')
  const requests = lines.map((line, index) => parsePart(`${requestsFile}, line ${index + 1}`, line, parseRequest))
  const page = await readPart(folder, pageFile)
  const files = new Map(
    await Promise.all(proofFolders.map(async (each) => [each, await readProofs(folder, each)] as const)),
  )
  const proofs = proofsOf((each) => files.get(each) ?? [])
  const check = checkTrail({ head, requests, ...proofs }, keys, witnessKeys)
  // What is wrong with the proofs makes the page wrong too.
  if (check.problems.length === 0)
    for (const part of findStaleParts(page, head, check))
      check.problems.push(`index.html does not show what ${part} says: one of the two was changed`)
  for (const each of proofFolders)
    for (const { file, text } of proofs[each])
      if (check.size > 0 && parseProof(text) !== undefined && file !== fileOf(each, text))
        check.problems.push(`${file}: it has the content of ${fileOf(each, text)}`)
  return { ...check, head }
}

async function readPart(folder: string, file: string): Promise<string> {
  return readFile(join(folder, file), 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Fault('invalid', `${file}: ${error.code === 'ENOENT' ? 'it is missing' : 'it cannot be read'}`)
  })
}

function parsePart<Part>(name: string, text: string, parse: (text: string) => Part): Part {
  try {
    return parse(text)
  } catch (error) {
    throw new Fault('invalid', `${name}: it is damaged: ${(error as Error).message}`)
  }
}

async function readProofs(folder: string, within: ProofFolder): Promise<ProofFile[]> {
  const names: string[] = await readdir(join(folder, within)).catch(() => [])
  const files = names.toSorted().map((name) => `${within}/${name}`)
  return Promise.all(files.map(async (file) => ({ file, text: await readPart(folder, file) })))
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
   - "Not proven": requests of days whose totals the log did not have yet. They are in index.html as "not yet", and not in the sum: do not
     rely on them. Ask for the folder again when the day has been over (UTC) for 15 minutes; a request that ended after its day, a day later.
   - "requests used access tokens whose exchanges are not in this trail": those exchanges are of an earlier time, or in an archive.
   - "a key made more requests than this trail has": other subjects use the same key, or requests were left out. index.html has the days.
2. Open index.html in a browser. It has no script. The first step has compared it with the proofs. To follow a request from its identity to
   its cost: its access token leads to the exchange above, which names policy and key, and the table of changes below says what each
   of the two was, since when and by whom: the rule of the policy that let the identity in, and the prices that explain the cost. A change
   that was left out between two others is found. A change that is newer than the ones shown can be missing, as an exchange can.
3. To see that the log did not change later, keep the checkpoint at the end of any .tlog-proof file: the lines after the empty one. Compare
   it (or the whole .tlog-proof file) with the log, of which you get a folder too:

     latchkey audit verify LOG-FOLDER --verifier-key KEY --against CHECKPOINT

What is what
------------
exchanges/     an exchange of a token of the subject for an access token, or its refusal
changes/       the changes by administrators that made the issuer, its policies, their keys and prices what they were
days/          the totals of a closed day, with the root of a tree that has every request of the day
erasures/      what says that rows of such a day were erased later
requests.ndjson  the requests, one on a line: the row, and the hashes that lead to the root of its day

Each .tlog-proof is a C2SP tlog-proof: the manual page "audit" of Latchkey says how to check one with other programs.
`
}
