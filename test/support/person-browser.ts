// The browser of a person: follows redirects, keeps cookies by host, and submits forms that ask for nothing but a click.

export type PersonBrowser = {
  /** Opens an address, and returns the last response with every address on the way. */
  open: (url: string, init?: RequestInit) => Promise<Opened>
  cookies: Map<string, Map<string, string>>
}
export type Opened = { status: number; text: string; url: string; visited: string[] }

const redirectsMax = 20

/** Stops before an address that `isLast` names, so that a test can change what comes back. */
export function openPersonBrowser({ isLast = () => false }: { isLast?: (url: string) => boolean } = {}): PersonBrowser {
  const cookies = new Map<string, Map<string, string>>()
  const jarOf = (url: string) => {
    const { hostname } = new URL(url)
    const jar = cookies.get(hostname) ?? new Map<string, string>()
    cookies.set(hostname, jar)
    return jar
  }
  const ask = async (url: string, init: RequestInit) => {
    const jar = jarOf(url)
    const cookie = [...jar].map((pair) => pair.join('=')).join('; ')
    const headers = { ...(init.headers as Record<string, string>), ...(cookie === '' ? {} : { cookie }) }
    const response = await fetch(url, { ...init, headers, redirect: 'manual' })
    for (const line of response.headers.getSetCookie()) {
      const [pair = ''] = line.split(';')
      const at = pair.indexOf('=')
      if (/max-age=0|expires=thu, 01 jan 1970/i.test(line)) jar.delete(pair.slice(0, at))
      else jar.set(pair.slice(0, at), pair.slice(at + 1))
    }
    return response
  }
  return {
    cookies,
    open: async (start, init = {}) => {
      const visited: string[] = []
      let url = start
      let next = init
      for (let count = 0; count < redirectsMax; count++) {
        visited.push(url)
        if (isLast(url)) return { status: 0, text: '', url, visited }
        const response = await ask(url, next)
        const location = response.headers.get('location')
        const text = await response.text()
        if (location === null) return { status: response.status, text, url, visited }
        url = new URL(location, url).href
        next = {}
      }
      throw new Error(`Too many redirects: ${visited.join(' ')}`)
    },
  }
}

/** The fields of the first form of a page, and where it goes. */
export function readForm({ text, url }: Opened): { action: string; fields: URLSearchParams } {
  const action = /<form[^>]*action="([^"]+)"/.exec(text)?.[1] ?? ''
  const fields = new URLSearchParams()
  for (const [input] of text.matchAll(/<input[^>]*>/g)) {
    const name = /name="([^"]+)"/.exec(input)?.[1]
    const value = /value="([^"]*)"/.exec(input)?.[1] ?? ''
    if (name !== undefined) fields.set(name, value)
  }
  return { action: new URL(action.replaceAll('&amp;', '&'), url).href, fields }
}
