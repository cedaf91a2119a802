// Counts the turns of the event loop. Code that blocks the loop allows no turns.

/** Returns the number of turns of the event loop while a function runs. */
export async function turnsDuring(run: () => Promise<unknown>): Promise<number> {
  let turns = 0
  let isOver = false
  const turn = () => {
    turns += 1
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  await run()
  isOver = true
  return turns
}
