// The files of the admin page: which there are, how large, what they name, and the headers under which they are sent.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { readMarkdown } from '../../src/manual/markdown.ts'
import { topics } from '../../src/manual/topics.ts'
import { squeezedCss, withoutComments } from '../../src/page/asset-text.ts'
import { assets } from '../../src/page/assets.ts'
import { fonts } from '../../src/page/fonts.ts'
import { startTestServer, type TestServer } from '../support/latchkey.ts'

const folder = join(import.meta.dirname, '../../src/page/assets')
const litHtml = join(import.meta.dirname, '../../node_modules/lit-html')
const library = ['lit-html.js', 'directive.js', 'directive-helpers.js', 'repeat.js']

describe('the assets', () => {
  test('are all files of the folder, and lit-html', () => {
    const files = readdirSync(folder).filter((name) => !name.endsWith('.d.ts'))
    expect([...assets.keys()].toSorted()).toEqual([...files, ...library].toSorted())
    for (const name of files) {
      const shorten = name.endsWith('.css') ? squeezedCss : withoutComments
      const sent = assets.get(name)?.replaceAll(/<link rel="modulepreload"[^>]+>/g, '')
      expect(sent).toBe(shorten(readFileSync(join(folder, name), 'utf8')))
    }
    for (const name of library.slice(0, -1)) expect(assets.get(name)).toBe(readFileSync(join(litHtml, name), 'utf8'))
    expect(assets.get('repeat.js')).toStartWith('import{noChange as e}from"./lit-html.js";import{directive as ')
  })

  test('of the first view are asked for at once: the document names each module that another one needs', () => {
    const named = [...(assets.get('index.html') ?? '').matchAll(/modulepreload" href="assets\/([^"]+)"/g)].map(
      ([, name = '']) => name,
    )
    const needed = named.flatMap((name) =>
      new Bun.Transpiler({ loader: 'js' })
        .scanImports(assets.get(name) ?? '')
        .flatMap(({ kind, path }) => (kind === 'import-statement' ? [path.replace('./', '')] : [])),
    )
    expect(named).toEqual(expect.arrayContaining(['main.js', 'overview.js', 'lit-html.js', 'directive.js']))
    expect(new Set(['main.js', 'overview.js', ...needed])).toEqual(new Set(named))
    expect(named.toSorted()).toEqual([...new Set(named)].toSorted())
    expect(named).not.toContain('policies.js')
  })

  test('do the same without their comments and indentation', () => {
    const transpiler = new Bun.Transpiler({ loader: 'js', minifyWhitespace: true })
    const codeOf = (text: string) => transpiler.transformSync(text).replaceAll(/(?:\\n|\s)+/g, ' ')
    const modules = [...assets.keys()].filter((name) => name.endsWith('.js') && !library.includes(name))
    for (const name of modules) {
      const source = readFileSync(join(folder, name), 'utf8')
      expect({ name, code: codeOf(assets.get(name) ?? '') }).toEqual({ name, code: codeOf(source) })
    }
    expect(modules.length).toBeGreaterThan(20)
    expect(codeOf('/** @param x */\nf( 1 )')).toBe(codeOf('f(1)'))
  })

  test('the style sheet keeps the spaces that count', () => {
    const css =
      'a > b :is(c, d) {\n  margin: 0 calc(1px + 2px);\n  font: 1em "A B", serif;\n}\n@media (x: 1px) {\n  a { b: c; }\n}\n'
    expect(squeezedCss(css)).toBe('a>b :is(c,d){margin:0 calc(1px + 2px);font:1em "A B",serif;}@media (x:1px){a{b:c;}}')
  })

  test('are smaller than 200 KB together, as a browser gets them', () => {
    const bytes = [...assets.values()].reduce((sum, text) => sum + gzipSync(text).byteLength, 0)
    expect(bytes).toBeLessThan(200 * 1024)
  })

  test('have fonts of at most 120 KB together, each of which the style sheet names', () => {
    const names = [...(assets.get('page.css') ?? '').matchAll(/url\((\S+?\.woff2)\)/g)].map(([, name]) => name)
    expect(names.toSorted()).toEqual([...fonts.keys()].toSorted())
    for (const font of fonts.values()) expect(new TextDecoder().decode(font.slice(0, 4))).toBe('wOF2')
    expect([...fonts.values()].reduce((sum, font) => sum + font.byteLength, 0)).toBeLessThan(120 * 1024)
  })

  // The compiler cannot see it: the types of responses bring those of Node with them.
  test('use nothing that only Node has', () => {
    const ofNode = (text: string) => /\b(process|Buffer|require|setImmediate|global)\b(?=[.(])/.exec(text)?.[0]
    for (const [name, text] of assets) expect({ name, found: ofNode(text) }).toEqual({ name, found: undefined })
    expect(ofNode('read(process.env)')).toBe('process')
  })

  test('name no other site: everything comes from the server', () => {
    const urlsIn = (text: string) =>
      [...text.matchAll(/(?:https?:|wss?:)?\/\/[\w-]+\.[\w.-]+[^\s"'`)]*/g)].map(([url]) => url)
    for (const [name, text] of assets) {
      const withoutComments = text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '')
      // The address of a login is on the machine of the person who signs in.
      const known = ['http://www.w3.org/', 'http://127.0.0.1/callback']
      const found = urlsIn(withoutComments).filter((url) => known.every((start) => !url.startsWith(start)))
      expect({ name, found }).toEqual({ name, found: [] })
    }
    expect(urlsIn('a "https://cdn.example.com/x.js" b //fonts.example.org/y')).toHaveLength(2)
  })
})

describe('on the wire', () => {
  let latchkey: TestServer
  let origin: string
  beforeAll(async () => {
    latchkey = await startTestServer()
    origin = new URL(latchkey.server.baseUrl).origin
  })
  afterAll(() => latchkey.stop())

  test('/admin leads to the page', async () => {
    const response = await fetch(`${origin}/admin`)
    expect([response.url, response.status]).toEqual([`${origin}/admin/`, 200])
    expect(await response.text()).toBe(assets.get('index.html') ?? '')
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
  })

  test('every file has its bytes, a media type, an ETag and the protection', async () => {
    for (const [name, text] of assets) {
      const response = await fetch(`${origin}/admin/assets/${name}`)
      expect(await response.text()).toBe(text)
      const { headers } = response
      expect(headers.get('content-type')).toMatch(/^(text\/(html|css|javascript)|image\/svg\+xml); charset=utf-8$/)
      expect(headers.get('etag')).toMatch(/^"[\w-]{43}-gzip"$/)
      expect([headers.get('content-encoding'), headers.get('vary')]).toEqual(['gzip', 'accept-encoding'])
      expect(headers.get('content-security-policy')).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; connect-src 'self'; form-action 'none'; " +
          "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types lit-html",
      )
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(headers.get('cross-origin-opener-policy')).toBe('same-origin')
      expect(headers.get('cross-origin-resource-policy')).toBe('same-origin')
    }
  })

  test('a file goes unpacked to who does not read gzip, under another ETag', async () => {
    const headers = { 'accept-encoding': 'identity' }
    const response = await fetch(`${origin}/admin/assets/main.js`, { headers })
    expect(response.headers.get('content-encoding')).toBeNull()
    expect(response.headers.get('etag')).not.toContain('gzip')
    expect(await response.text()).toBe(assets.get('main.js') ?? '')
  })

  test('a font has its bytes and its media type', async () => {
    for (const [name, font] of fonts) {
      const response = await fetch(`${origin}/admin/assets/${name}`)
      expect(response.headers.get('content-type')).toBe('font/woff2')
      expect(new Uint8Array(await response.arrayBuffer())).toEqual(font)
    }
  })

  test('the manual has the texts of latchkey help', async () => {
    const read = (path: string) => fetch(`${origin}/admin/manual${path}`)
    expect(await (await read('')).json()).toEqual([...topics.keys()])
    const response = await read('/policies')
    expect(await response.json()).toEqual(readMarkdown(topics.get('policies') ?? ''))
    expect(response.headers.get('content-security-policy')).not.toBeNull()
    expect((await read('/secrets')).status).toBe(404)
  })

  test('a file that the browser has is a 304, and one that changed is sent again', async () => {
    const first = await fetch(`${origin}/admin/assets/main.js`)
    const etag = first.headers.get('etag') ?? ''
    const again = (known: string) =>
      fetch(`${origin}/admin/assets/main.js`, { headers: { 'if-none-match': known, 'cache-control': 'max-age=0' } })
    expect((await again(`"x", W/${etag}`)).status).toBe(304)
    expect((await again('"x"')).status).toBe(200)
  })

  test('nothing else lies below /admin/', async () => {
    for (const path of ['/admin/assets/', '/admin/x', '/admin/assets/x.js', '/admin/assets/..%2fassets.ts', '/admin//'])
      expect((await fetch(origin + path)).status).toBe(404)
    expect((await fetch(`${origin}/admin/?x=1`)).status).toBe(400)
    expect((await fetch(`${origin}/admin/`, { method: 'POST' })).status).toBe(405)
  })
})

test('LATCHKEY_ADMIN_PAGE=false turns the page off', async () => {
  const off = await startTestServer({ settings: { LATCHKEY_ADMIN_PAGE: 'false' } })
  const { origin } = new URL(off.server.baseUrl)
  for (const path of ['/admin', '/admin/', '/admin/assets/main.js'])
    expect((await fetch(origin + path)).status).toBe(404)
  await off.stop()
})
