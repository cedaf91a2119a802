// Waiting for a promise with a bound.

/** Whether the promise resolves in time. @throws as the promise does, unless it is late */
export async function isSettledWithin(promise: Promise<unknown>, milliseconds: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), milliseconds)
  })
  const isSettled = await Promise.race([promise.then(() => true), late])
  clearTimeout(timer)
  return isSettled
}
