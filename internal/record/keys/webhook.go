package keys

import (
	"fmt"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/table"
)

func webhooksPK(workspace string) string { return "W#" + workspace + "#WEBHOOKS" }

const webhookPrefix = "WEBHOOK#"

// Webhook is the key of a webhook. A workspace's webhooks share a partition, so that one
// consistent read returns all of them.
func Webhook(workspace, webhook string) table.Key {
	return table.Key{PK: webhooksPK(workspace), SK: webhookPrefix + webhook}
}

// WebhookID reads a webhook's id back from its key.
func WebhookID(key table.Key) string { return strings.TrimPrefix(key.SK, webhookPrefix) }

// Webhooks asks for a workspace's webhooks, oldest first.
func Webhooks(workspace string) table.Query {
	return table.Query{PK: webhooksPK(workspace), Prefix: webhookPrefix}
}

// WebhookCount is the key of the count of a workspace's webhooks, which is bounded.
func WebhookCount(workspace string) table.Key {
	return table.Key{PK: webhooksPK(workspace), SK: "COUNT"}
}

const webhookDeliveries = "#DELIVERIES"

func webhookPK(workspace, webhook string) string { return "W#" + workspace + "#WEBHOOK#" + webhook }

// WebhookDelivery is the key of a delivery, in the log of a webhook or of another sender of
// messages.
func WebhookDelivery(workspace, log, delivery string) table.Key {
	return table.Key{PK: webhookPK(workspace, log) + webhookDeliveries, SK: delivery}
}

// WebhookDeliveries asks for the deliveries of a log, oldest first.
func WebhookDeliveries(workspace, log string) table.Query {
	return table.Query{PK: webhookPK(workspace, log) + webhookDeliveries}
}

// DeliveryParts are the ids in the key of a delivery.
type DeliveryParts struct{ Workspace, Log, Delivery string }

// ParseWebhookDelivery reads the ids back from the key of a delivery.
func ParseWebhookDelivery(key table.Key) (DeliveryParts, error) {
	parts := strings.Split(key.PK, "#")
	if len(parts) != 5 || parts[0] != "W" || parts[2] != "WEBHOOK" || "#"+parts[4] != webhookDeliveries {
		return DeliveryParts{}, fmt.Errorf("key %v is not that of a delivery", key)
	}
	return DeliveryParts{Workspace: parts[1], Log: parts[3], Delivery: key.SK}, nil
}
