package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// Names of a stored item's attributes. The seam's own attributes are members of one map, so
// that no name can clash.
const (
	namePK      = "pk"
	nameSK      = "sk"
	nameExpires = "expires"
	nameAttrs   = "attrs"
	nameBody    = "body"
	// namePacked holds the body in compressed form (pack.go), in place of nameBody.
	namePacked = "packed"
	nameBodyID = "body_id"
	nameChunks = "body_chunks"
	// nameTx is the token of the transaction that wrote the item last. With it, a watcher sees
	// every change.
	nameTx = "tx"
)

// TTLAttribute is the attribute by which DynamoDB erases expired items.
const TTLAttribute = nameExpires

var indexes = [...]table.Index{table.ByList, table.ByDue}

// keyNames are the names of the attributes that hold an item's key in an index. "" is the table
// itself.
func keyNames(index table.Index) (pk, sk string) {
	if index == "" {
		return namePK, nameSK
	}
	return string(index) + "_pk", string(index) + "_sk"
}

// Schema describes the table in the form of a CreateTable request. template.yaml declares the
// same. The index list holds whole heads, so that a list is one query. The index due holds
// keys and the time when an item expires, so that it is written only when the key in it
// changes. An index is sparse because only items that have its attributes are in it.
func Schema(name string) *dynamodb.CreateTableInput {
	input := &dynamodb.CreateTableInput{
		TableName:            aws.String(name),
		BillingMode:          types.BillingModePayPerRequest,
		KeySchema:            keySchema(namePK, nameSK),
		AttributeDefinitions: textAttributes(namePK, nameSK),
	}
	for _, index := range indexes {
		pk, sk := keyNames(index)
		input.AttributeDefinitions = append(input.AttributeDefinitions, textAttributes(pk, sk)...)
		input.GlobalSecondaryIndexes = append(input.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName:  aws.String(string(index)),
			KeySchema:  keySchema(pk, sk),
			Projection: projection(index),
		})
	}
	return input
}

func projection(index table.Index) *types.Projection {
	if index.Whole() {
		return &types.Projection{ProjectionType: types.ProjectionTypeAll}
	}
	return &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: []string{nameExpires}}
}

func keySchema(pk, sk string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: aws.String(pk), KeyType: types.KeyTypeHash},
		{AttributeName: aws.String(sk), KeyType: types.KeyTypeRange},
	}
}

func textAttributes(names ...string) []types.AttributeDefinition {
	var definitions []types.AttributeDefinition
	for _, name := range names {
		definitions = append(definitions, types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS})
	}
	return definitions
}
