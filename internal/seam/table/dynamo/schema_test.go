package dynamo_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/table/dynamo"
	"github.com/slipway-run/slipway/internal/test/check"
	emulator "github.com/slipway-run/slipway/internal/test/emulator/dynamodb"
	"github.com/slipway-run/slipway/internal/test/template"
)

// root is the directory of the template.
var root = filepath.Join("..", "..", "..", "..")

func TestTheTemplateDeclaresTheTable(t *testing.T) {
	t.Parallel()
	got, err := emulator.Declared(root)
	check.Must(t, err)
	want := template.Table{
		Name: "Table", BillingMode: "PAY_PER_REQUEST", Attributes: map[string]string{}, TTL: dynamo.NameExpires,
		Stream: "NEW_AND_OLD_IMAGES", PointInTime: true, Encrypted: true, DeletionPolicy: "RetainExceptOnCreate", UpdateReplacePolicy: "Retain",
	}
	key := func(names ...string) []template.KeyElement {
		for _, name := range names {
			want.Attributes[name] = "S"
		}
		return []template.KeyElement{{Name: names[0], Kind: "HASH"}, {Name: names[1], Kind: "RANGE"}}
	}
	pk, sk := dynamo.KeyNames("")
	want.Key = key(pk, sk)
	for _, name := range dynamo.Indexes {
		pk, sk := dynamo.KeyNames(name)
		index := template.Index{Name: string(name), Key: key(pk, sk), Projection: "ALL"}
		if !name.Whole() {
			index.Projection, index.Included = "INCLUDE", []string{dynamo.NameExpires}
		}
		want.Indexes = append(want.Indexes, index)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
