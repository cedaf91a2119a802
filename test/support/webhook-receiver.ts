// A receiver of webhooks that verifies each request with the official package, and fails as a test wants.
import { Webhook } from 'standardwebhooks'
import { listenLocally } from './latchkey.ts'

export type ReceivedEvent = { id: string; type: string; timestamp: string; data: Record<string, unknown> }
export type WebhookReceiver = {
  url: string
  /** Every request whose signature was right, in order. */
  received: ReceivedEvent[]
  /** What the package refused. */
  refused: unknown[]
  /** Says how the next requests are answered; without it, with 204. */
  answer: { current: ((event: ReceivedEvent) => Response | Promise<Response>) | undefined }
  /** What requests must be signed with. */
  secret: { current: string }
  stop: () => Promise<void>
}

export async function startWebhookReceiver(secretText = ''): Promise<WebhookReceiver> {
  const received: ReceivedEvent[] = []
  const refused: unknown[] = []
  const answer: WebhookReceiver['answer'] = { current: undefined }
  const secret = { current: secretText }
  const { url, listener } = await listenLocally(async (request) => {
    const body = await request.text()
    const headers = Object.fromEntries(request.headers)
    try {
      const event = new Webhook(secret.current).verify(body, headers) as Omit<ReceivedEvent, 'id'>
      const seen = { ...event, id: headers['webhook-id'] ?? '' }
      received.push(seen)
      return (await answer.current?.(seen)) ?? new Response(null, { status: 204 })
    } catch (error) {
      refused.push(error)
      return new Response(null, { status: 400 })
    }
  })
  return { url: `${url}/hook`, received, refused, answer, secret, stop: () => listener.drain(0) }
}
