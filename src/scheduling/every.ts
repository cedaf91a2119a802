// The one timer for what repeats. It knows no work.

/**
 * Calls `work` after each `milliseconds`, but never while an earlier call runs. Returns a function that stops the timer; a call that
 * runs is not ended. `onFailure` gets what `work` rejects with.
 */
export function every(
  milliseconds: number,
  work: () => unknown,
  onFailure: (error: unknown) => void = () => {},
): () => void {
  let isRunning = false
  const timer = setInterval(() => {
    if (isRunning) return
    const result = work()
    if (!(result instanceof Promise)) return
    isRunning = true
    void result.catch(onFailure).finally(() => {
      isRunning = false
    })
  }, milliseconds)
  return () => clearInterval(timer)
}
