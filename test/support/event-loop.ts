// Counts the turns of the event loop: whatever holds it lets none pass.

/** How often it turns while something runs. */
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
