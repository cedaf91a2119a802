// Which address of a cluster is asked next. Any node forwards to the leader, so one that works is kept.

export type Addresses = {
  all: readonly string[]
  /** The one to ask now. */
  current: () => string
  /** After a failure at this one: the next, unless another request has moved on already. */
  leave: (failed: string) => void
}

export function createAddresses(all: readonly string[]): Addresses {
  let index = 0
  const current = () => all[index % all.length] ?? ''
  return {
    all,
    current,
    leave: (failed) => {
      if (current() === failed) index += 1
    },
  }
}
