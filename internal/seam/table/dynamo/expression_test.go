package dynamo_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/dynamo"
)

const (
	alive    = `(attribute_exists(pk) AND (attribute_not_exists(expires) OR expires > 1000))`
	noChunks = ` AND attribute_not_exists(body_id)`
)

func TestConditions(t *testing.T) {
	t.Parallel()
	hundred := make([]any, 101)
	for i := range hundred {
		hundred[i] = int64(i)
	}
	for name, c := range map[string]struct {
		cond table.Cond
		want string
	}{
		"absent":        {table.Absent(), "NOT " + alive},
		"present":       {table.Present(), alive},
		"equal text":    {table.Equals("status", "open"), alive + ` AND attrs.status IN ("open")`},
		"equal integer": {table.Equals("n", int64(-7)), alive + ` AND attrs.n IN (-7)`},
		"types apart":   {table.In("v", "1", true, int64(1), "2"), alive + ` AND (attrs.v IN ("1", "2") OR attrs.v IN (1) OR attrs.v IN (true))`},
		"none of them":  {table.In("v"), alive + ` AND attribute_exists(attrs.v) AND attribute_not_exists(attrs.v)`},
		"conjunction": {
			table.All(table.Present(), table.Equals("a", "x"), table.Equals("b", "y")),
			alive + ` AND attrs.a IN ("x") AND attrs.b IN ("y")`,
		},
		"name of our own": {table.Equals("pk", "x"), alive + ` AND attrs.pk IN ("x")`},
	} {
		got, _ := dynamo.Expressions(table.Check{Key: key("p", "a"), If: c.cond}, 1000)
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
	many, _ := dynamo.Expressions(table.Check{Key: key("p", "a"), If: table.In("v", hundred...)}, 1000)
	if got := strings.Count(many, " IN ("); got != 2 {
		t.Errorf("101 operands: got %d lists, want 2, as one takes 100", got)
	}
}

func TestGuards(t *testing.T) {
	t.Parallel()
	large := make([]byte, dynamo.InlineBody+1)
	for name, c := range map[string]struct {
		write table.Write
		want  string
	}{
		"put":               {table.Put{}, `attribute_not_exists(body_id)`},
		"put that is new":   {table.Put{If: table.Absent()}, "NOT " + alive + noChunks},
		"delete":            {table.Delete{}, `attribute_not_exists(body_id)`},
		"update":            {table.Update{}, alive},
		"update of a body":  {table.Update{Body: []byte("x")}, alive + noChunks},
		"update to a large": {table.Update{Body: large}, alive + ` AND attribute_not_exists(expires)` + noChunks},
		"increment": {
			table.Update{Add: map[string]int64{"n": 2}},
			alive + ` AND (attribute_not_exists(attrs.n) OR attrs.n BETWEEN -9223372036854775808 AND 9223372036854775805)`,
		},
		"decrement": {
			table.Update{Add: map[string]int64{"n": -2}},
			alive + ` AND (attribute_not_exists(attrs.n) OR attrs.n BETWEEN -9223372036854775806 AND 9223372036854775807)`,
		},
	} {
		if got, _ := dynamo.Expressions(c.write, 1000); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

func TestUpdates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		update table.Update
		want   string
	}{
		"nothing": {table.Update{}, `SET tx = "TX"`},
		"attributes": {
			table.Update{Set: table.Attrs{"b": true, "a": "x"}, Add: map[string]int64{"n": 1}, Unset: []string{"d", "c", "d"}},
			`SET tx = "TX", attrs.a = "x", attrs.b = true, attrs.n = if_not_exists(attrs.n, 0) + 1 REMOVE attrs.c, attrs.d`,
		},
		"index": {
			table.Update{Index: map[table.Index]table.Key{table.ByList: key("l", "1"), table.ByDue: {}}},
			`SET tx = "TX", list_pk = "l", list_sk = "1" REMOVE due_pk, due_sk`,
		},
		"small body": {table.Update{Body: []byte("xyz")}, `SET tx = "TX", body = 3 bytes REMOVE packed, body_id, body_chunks`},
		"packed":     {table.Update{Body: bytes.Repeat([]byte("xyz"), 100)}, `SET tx = "TX", packed = 13 bytes REMOVE body, body_id, body_chunks`},
		"no body":    {table.Update{Body: []byte{}}, `SET tx = "TX" REMOVE body, packed, body_id, body_chunks`},
	} {
		if _, got := dynamo.Expressions(c.update, 1000); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
	_, got := dynamo.Expressions(table.Update{Body: make([]byte, dynamo.ChunkSize+1)}, 1000)
	if !strings.HasSuffix(got, `, body_chunks = 2 REMOVE body, packed`) || !strings.Contains(got, `body_id = "`) {
		t.Errorf("large body: got %s, want a reference to two chunks", got)
	}
}

func TestKeyConditions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		query table.Query
		want  string
	}{
		"partition": {table.Query{PK: "p"}, `pk = "p"`},
		"from":      {table.Query{PK: "p", From: "a"}, `pk = "p" AND sk >= "a"`},
		"to":        {table.Query{PK: "p", To: "b"}, `pk = "p" AND sk <= "b"`},
		"range":     {table.Query{PK: "p", From: "a", To: "b"}, `pk = "p" AND sk BETWEEN "a" AND "b"`},
		"prefix":    {table.Query{PK: "p", Prefix: "a"}, `pk = "p" AND begins_with(sk, "a")`},
		"index":     {table.Query{PK: "p", Index: table.ByDue, To: "b"}, `due_pk = "p" AND due_sk <= "b"`},
	} {
		if got := dynamo.KeyCondition(c.query); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}
