// What tests and benches leave to the end of their process, such as a folder that tests share.
const endings: (() => void)[] = []

/** Runs it once. Tests do so after the last file, or after each file where files run in parallel; a bench when it exits. */
export function atEnd(ending: () => void): void {
  endings.push(ending)
}

export function runEndings(): void {
  for (const ending of endings.splice(0)) ending()
}

process.once('exit', runEndings)
