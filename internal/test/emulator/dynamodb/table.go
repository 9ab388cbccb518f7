package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/slipway-run/slipway/internal/test/template"
)

// Declared returns the table that the template in a directory declares.
func Declared(root string) (template.Table, error) {
	read, err := template.Load(filepath.Join(root, "template.yaml"))
	if err != nil {
		return template.Table{}, err
	}
	stack, err := read.Resolve(template.Values{})
	if err != nil {
		return template.Table{}, err
	}
	return stack.Tables["Table"], nil
}

// CreateTable makes a table under a name as the template declares it, with its keys, indexes
// and time to live. An existing table is not changed.
func CreateTable(ctx context.Context, client *dynamodb.Client, name string, declared template.Table) error {
	input := &dynamodb.CreateTableInput{
		TableName: aws.String(name), BillingMode: types.BillingMode(declared.BillingMode), KeySchema: keySchema(declared.Key),
	}
	for _, attribute := range slices.Sorted(maps.Keys(declared.Attributes)) {
		input.AttributeDefinitions = append(input.AttributeDefinitions, types.AttributeDefinition{
			AttributeName: aws.String(attribute), AttributeType: types.ScalarAttributeType(declared.Attributes[attribute]),
		})
	}
	for _, index := range declared.Indexes {
		input.GlobalSecondaryIndexes = append(input.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: aws.String(index.Name), KeySchema: keySchema(index.Key),
			Projection: &types.Projection{ProjectionType: types.ProjectionType(index.Projection), NonKeyAttributes: index.Included},
		})
	}
	_, err := client.CreateTable(ctx, input)
	if _, exists := errors.AsType[*types.ResourceInUseException](err); exists {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create table %s: %w", name, err)
	}
	if declared.TTL == "" {
		return nil
	}
	_, err = client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String(name),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(declared.TTL), Enabled: aws.Bool(true)},
	})
	if err != nil {
		return fmt.Errorf("create table %s: set time to live: %w", name, err)
	}
	return nil
}

func keySchema(elements []template.KeyElement) []types.KeySchemaElement {
	var schema []types.KeySchemaElement
	for _, element := range elements {
		schema = append(schema, types.KeySchemaElement{AttributeName: aws.String(element.Name), KeyType: types.KeyType(element.Kind)})
	}
	return schema
}
