// How fast places become free at each inference server while it is full, for `Retry-After`.

/** The last places that became free; more would remember another load. */
const placesMax = 32
const secondsUnknown = 5
const secondsMax = 120

export type DrainRates = {
  /** A place of a full server became free. */
  note: (server: string) => void
  /** The server is not full: what was noted is of another load. */
  forget: (server: string) => void
  /** Whole seconds, at least one, until so many places have become free; a guess where nothing is known. */
  secondsFor: (server: string, places: number) => number
}

/** `monotonic` in milliseconds. */
export function createDrainRates(monotonic: () => number): DrainRates {
  const times = new Map<string, number[]>()
  return {
    note: (server) => {
      const ofServer = times.get(server) ?? []
      times.set(server, ofServer)
      ofServer.push(monotonic())
      if (ofServer.length > placesMax) ofServer.shift()
    },
    forget: (server) => {
      times.delete(server)
    },
    secondsFor: (server, places) => {
      const ofServer = times.get(server) ?? []
      const [oldest] = ofServer
      if (oldest === undefined || ofServer.length < 2) return secondsUnknown
      const millisecondsPerPlace = (monotonic() - oldest) / (ofServer.length - 1)
      return Math.min(secondsMax, Math.max(1, Math.ceil((places * millisecondsPerPlace) / 1_000)))
    },
  }
}
