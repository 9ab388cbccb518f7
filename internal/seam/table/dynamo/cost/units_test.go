//go:build cost

package cost_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// item is an item in its wire form: values by name, each an object whose only name is its
// type.
type item map[string]map[string]any

// images are the items that a transaction touches, by key. Absent items are left out.
type images map[string]item

func imageKey(of map[string]text) string { return of["pk"].S + "\x00" + of["sk"].S }

// look reads items without the meter, to see their size.
func (m *meter) look(r *http.Request, name string, keys []map[string]text) (images, error) {
	asked, err := json.Marshal(map[string]any{"RequestItems": map[string]any{name: map[string]any{"Keys": keys, "ConsistentRead": true}}})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(r.Context(), http.MethodPost, local.endpoint, bytes.NewReader(asked))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", r.Header.Get("Authorization"))
	request.Header.Set("X-Amz-Date", r.Header.Get("X-Amz-Date"))
	request.Header.Set("Content-Type", "application/x-amz-json-1.0")
	request.Header.Set("X-Amz-Target", "DynamoDB_20120810.BatchGetItem")
	answer, err := local.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	var said struct{ Responses map[string][]item }
	if err := json.Unmarshal(body, &said); err != nil || answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("look at items: status %d: %s: %w", answer.StatusCode, body, err)
	}
	found := images{}
	for _, one := range said.Responses[name] {
		found[one.text("pk")+"\x00"+one.text("sk")] = one
	}
	return found, nil
}

func (i item) text(name string) string {
	text, _ := i[name]["S"].(string)
	return text
}

// size is the size that DynamoDB counts for an item.
func (i item) size() int {
	n := 0
	for name, value := range i {
		n += len(name) + sizeOf(value)
	}
	return n
}

func sizeOf(value map[string]any) int {
	for kind, v := range value {
		switch v := v.(type) {
		case string:
			switch kind {
			case "B":
				return base64.StdEncoding.DecodedLen(len(v)) - strings.Count(v, "=")
			case "N":
				return (len(strings.Trim(v, "-.0"))+1)/2 + 1
			}
			return len(v)
		case map[string]any:
			n := 3
			for name, member := range v {
				n += 1 + len(name) + sizeOf(member.(map[string]any))
			}
			return n
		case []any:
			n := 3
			for _, member := range v {
				n += 1 + sizeOf(member.(map[string]any))
			}
			return n
		}
	}
	return 1 // a boolean or null
}

// kilobytes are the units of a write. An absent item counts as one.
func kilobytes(i item) float64 { return float64(max(1, (i.size()+1023)/1024)) }

// transacted is the cost of a write of a transaction, by the images before and after it: two
// units for each KB of the larger one. An index is written afterwards and for one unit each,
// two when its key moves, and not at all when the index's data of the item does not change.
func transacted(before, after item) units {
	u := units{write: 2 * max(kilobytes(before), kilobytes(after))}
	for _, index := range []table.Index{table.ByList, table.ByDue} {
		pk, sk := string(index)+"_pk", string(index)+"_sk"
		was, is := before[pk] != nil, after[pk] != nil
		held, holds := before, after
		if !index.Whole() {
			held, holds = reference(before, pk, sk), reference(after, pk, sk)
		}
		switch {
		case was && is && !index.Whole() && reflect.DeepEqual(held, holds):
		case was && is && before.text(pk) == after.text(pk) && before.text(sk) == after.text(sk):
			u.index += max(kilobytes(held), kilobytes(holds))
		case was && is:
			u.index += kilobytes(held) + kilobytes(holds)
		case was:
			u.index += kilobytes(held)
		case is:
			u.index += kilobytes(holds)
		}
	}
	return u
}

// reference is the data that the index due holds of an item.
func reference(of item, pk, sk string) item {
	held := item{}
	for _, name := range []string{"pk", "sk", "expires", pk, sk} {
		if value, ok := of[name]; ok {
			held[name] = value
		}
	}
	return held
}
