// The routes of webhooks, and of the alerts that they get.
import { deletedResponse, listOf } from '../operation/responses.ts'
import { alertResponse } from '../webhooks/alerts.ts'
import { newWebhookResponse, webhookResponse, webhookTestResponse } from '../webhooks/webhook-response.ts'
import type { AdminRoute } from './admin-route.ts'

const webhooks = '/webhooks'
const rules =
  'The URL is `https://`. A private address must be in the networks that the server allows for webhooks (LATCHKEY_WEBHOOK_NETWORKS), and may then be `http://`.'

export const webhookRoutes: AdminRoute[] = [
  {
    method: 'GET',
    path: webhooks,
    operation: 'webhooks.list',
    summary: 'List the webhooks, with how their deliveries fare',
    answer: listOf(webhookResponse),
  },
  {
    method: 'POST',
    path: webhooks,
    operation: 'webhooks.add',
    summary: 'Send alerts to a URL; a secret that was made for it is in this response and nowhere else',
    rules,
    data: newWebhookResponse,
    status: 201,
  },
  {
    method: 'GET',
    path: `${webhooks}/{webhook}`,
    operation: 'webhooks.show',
    summary: 'Show a webhook',
    data: webhookResponse,
  },
  {
    method: 'PATCH',
    path: `${webhooks}/{webhook}`,
    operation: 'webhooks.update',
    summary: 'Change a webhook; what waits for it is sent by its new settings',
    rules,
    data: webhookResponse,
  },
  {
    method: 'DELETE',
    path: `${webhooks}/{webhook}`,
    operation: 'webhooks.delete',
    summary: 'Stop sending alerts to a webhook',
    data: deletedResponse,
  },
  {
    method: 'POST',
    path: `${webhooks}/{webhook}/test`,
    operation: 'webhooks.test',
    summary: 'Send a test event to a webhook, and report whether it arrived',
    data: webhookTestResponse,
    isBare: true,
  },
  {
    method: 'GET',
    path: '/alerts',
    operation: 'alerts.list',
    summary: 'List the alerts, newest first, with how far their deliveries are',
    answer: listOf(alertResponse),
  },
]
