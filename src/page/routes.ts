// Serves the files of the admin page: `/admin/` beside the base path, and `/admin/assets/NAME`. They hold nothing private, so no credential
// is needed.
import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { Fault } from '../fault.ts'
import { isKnown } from '../http/conditional.ts'
import type { Handle, ServedRoute } from '../http/endpoint.ts'
import { rejectQuery } from '../http/input.ts'

/** Nothing but the page's own files runs, and no other site can put it in a frame. */
const contentSecurityPolicy = [
  "default-src 'none'",
  ...["script-src 'self'", "style-src 'self'", "font-src 'self'", "img-src 'self'", "connect-src 'self'"],
  ...["form-action 'none'", "base-uri 'none'", "frame-ancestors 'none'"],
  ...["require-trusted-types-for 'script'", 'trusted-types lit-html'],
].join('; ')

const protection = {
  'content-security-policy': contentSecurityPolicy,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  // A browser asks each time and gets a 304, so that an upgrade is seen at once.
  'cache-control': 'no-cache',
}

const mediaTypes: Partial<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml; charset=utf-8',
  woff2: 'font/woff2',
}

type Content = string | Uint8Array<ArrayBuffer>
/** `packed`: made when a browser asks for it first, since all at once would take too long. */
type Asset = { content: Content; packed: Uint8Array<ArrayBuffer> | undefined; etag: string; mediaType: string }
let loading: Promise<Map<string, Asset>> | undefined

async function loadAssets(): Promise<Map<string, Asset>> {
  const [{ assets }, { fonts }] = await Promise.all([import('./assets.ts'), import('./fonts.ts')])
  return new Map(
    [...assets, ...fonts].map(([name, content]) => {
      const etag = createHash('sha256').update(content).digest('base64url')
      return [
        name,
        { content, packed: undefined, etag, mediaType: mediaTypes[name.split('.').at(-1) ?? ''] ?? 'text/plain' },
      ]
    }),
  )
}

/** @throws Fault `not_found` for a name that is not a file of the page */
async function respondWith(name: string, request: Request): Promise<Response> {
  loading ??= loadAssets()
  const asset = (await loading).get(name)
  if (asset === undefined) throw new Fault('not_found', 'Resource not found')
  const isPacked = typeof asset.content === 'string' && /\bgzip\b/.test(request.headers.get('accept-encoding') ?? '')
  const etag = `"${asset.etag}${isPacked ? '-gzip' : ''}"`
  const headers = { ...protection, vary: 'accept-encoding', etag }
  if (isKnown(request, etag)) return new Response(null, { status: 304, headers })
  if (isPacked) asset.packed ??= gzipSync(asset.content)
  const encoding: Record<string, string> = isPacked ? { 'content-encoding': 'gzip' } : {}
  const content = isPacked ? (asset.packed ?? asset.content) : asset.content
  return new Response(content, { headers: { ...headers, ...encoding, 'content-type': asset.mediaType } })
}

const showPage: Handle<unknown> = (request) => {
  rejectQuery(request)
  return respondWith('index.html', request)
}

const redirectToPage: Handle<unknown> = async () => new Response(null, { status: 308, headers: { location: 'admin/' } })

const showAsset: Handle<unknown> = (request, _context, { params }) => respondWith(params.name ?? '', request)

/** The blocks of a topic of the manual; without a name, the names of all. The same texts as `latchkey help`. */
const showTopic: Handle<unknown> = async (request, _context, { params }) => {
  rejectQuery(request)
  const [{ topics }, { readMarkdown }] = await Promise.all([
    import('../manual/topics.ts'),
    import('../manual/markdown.ts'),
  ])
  if (params.topic === undefined) return Response.json([...topics.keys()], { headers: protection })
  const text = topics.get(params.topic)
  if (text === undefined) throw new Fault('not_found', 'Resource not found')
  return Response.json(readMarkdown(text), { headers: protection })
}

/** They are not part of the API, so the OpenAPI document does not have them. */
export const pageRoutes: ServedRoute<unknown>[] = [
  { method: 'GET', path: '/admin/', isBesideBase: true, handle: showPage },
  { method: 'GET', path: '/admin', isBesideBase: true, handle: redirectToPage },
  { method: 'GET', path: '/admin/assets/{name}', isBesideBase: true, handle: showAsset },
  { method: 'GET', path: '/admin/manual', isBesideBase: true, handle: showTopic },
  { method: 'GET', path: '/admin/manual/{topic}', isBesideBase: true, handle: showTopic },
]
