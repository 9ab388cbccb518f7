package agentserver_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
)

// vocabulary are the words that have a meaning; each is a dimension.
var vocabulary = []string{"cat", "dog", "fish", "milk"}

// meaning counts the words of a text.
func meaning(text string) (vector []byte) {
	counts := make([]float32, len(vocabulary))
	for word := range strings.FieldsSeq(text) {
		if at := slices.Index(vocabulary, word); at >= 0 {
			counts[at]++
		}
	}
	switch text {
	case "short":
		counts = counts[1:]
	case "infinite":
		counts[0] = float32(math.Inf(1))
	}
	for _, count := range counts {
		vector = binary.LittleEndian.AppendUint32(vector, math.Float32bits(count))
	}
	return vector
}

// embedded embeds the texts of items: the members that the item names, otherwise "text".
func embedded(texts graph.Texts) (made graph.Embeddings, err error) {
	for _, item := range texts.Items {
		var value map[string]any
		if err := json.Unmarshal(item.Value, &value); err != nil {
			return made, err
		}
		if item.Fields == nil {
			item.Fields = []string{"text"}
		}
		vectors := []byte{}
		for _, field := range item.Fields {
			text, ok := value[field].(string)
			if text == "broken" {
				return made, errors.New("ValueError")
			}
			if ok {
				vectors = append(vectors, meaning(text)...)
			}
		}
		made.Items = append(made.Items, vectors)
	}
	for _, query := range texts.Queries {
		if query == "broken" {
			return made, errors.New("ValueError")
		}
		vector := meaning(query)
		switch query {
		case "several":
			vector = append(vector, vector...)
		case "nothing":
			vector = []byte{}
		}
		made.Queries = append(made.Queries, vector)
	}
	return made, nil
}

var indexed = build.Settings{Index: &build.Index{Embed: "./embed.py:embed", Dims: len(vocabulary)}}

func embedder(t *testing.T) (*httptest.Server, compute.Endpoint) {
	t.Helper()
	agent := graphtest.NewAgent(nil, graphtest.Token)
	agent.Embed = embedded
	server := httptest.NewServer(agent)
	t.Cleanup(server.Close)
	return server, compute.Endpoint{URL: server.URL, Token: graphtest.Token}
}

// setUpIndexed deploys an agent that embeds items.
func setUpIndexed(t *testing.T) (*fixture, *httptest.Server) {
	t.Helper()
	return setUpIndexedIn(t, quota.Limits{})
}

func setUpIndexedIn(t *testing.T, limits quota.Limits) (*fixture, *httptest.Server) {
	t.Helper()
	agent, endpoint := embedder(t)
	f := setUpLimited(t, endpoint, 0, limits)
	f.settings = indexed
	f.deploy(t, "agent")
	return f, agent
}

// ranking returns "key score" of each item of a search.
func ranking(t *testing.T, found response) string {
	t.Helper()
	wantStatus(t, found, http.StatusOK)
	var all []string
	for _, item := range found.member("items").([]any) {
		fields := item.(object)
		score, there := fields["score"]
		if !there {
			t.Errorf("%v has no score", fields["key"])
		}
		if number, ok := score.(float64); ok {
			score = fmt.Sprintf("%.2f", number)
		}
		all = append(all, fmt.Sprint(fields["key"], " ", score))
	}
	return strings.Join(all, ", ")
}

// TestAQueryRanksItemsBySimilarity also combines the query with namespaces, filters and pages.
// Of items with several texts, the best text counts.
func TestAQueryRanksItemsBySimilarity(t *testing.T) {
	t.Parallel()
	f, _ := setUpIndexed(t)
	put := func(key string, value object, index any, namespace ...string) {
		t.Helper()
		body := object{"namespace": namespace, "key": key, "value": value}
		if index != nil {
			body["index"] = index
		}
		wantStatus(t, f.call(t, "PUT", "/store/items", body), http.StatusNoContent)
	}
	put("cats", object{"text": "cat cat", "n": 1}, nil, "pets", "ann")
	put("milky", object{"text": "cat milk", "n": 2}, true, "pets", "ann")
	put("dogs", object{"text": "dog", "n": 1}, nil, "pets", "bob")
	put("hidden", object{"text": "cat", "n": 1}, false, "pets", "ann")
	put("blank", object{"n": 1}, nil, "pets", "ann")
	put("none", object{"text": "cat", "n": 2}, []string{}, "pets", "ann")
	put("other", object{"text": "dog", "name": "fish", "food": "cat fish"}, []string{"food", "name"}, "wild")
	for name, c := range map[string]struct {
		body object
		want string
	}{
		"all":               {object{"query": "cat"}, "cats 1.00, milky 0.71, other 0.71, dogs 0.00, none <nil>, blank <nil>, hidden <nil>"},
		"the best text":     {object{"query": "fish", "limit": 1}, "other 1.00"},
		"below a label":     {object{"query": "dog", "namespace_prefix": []string{"pets"}, "limit": 1}, "dogs 1.00"},
		"of one namespace":  {object{"query": "cat milk", "namespace_prefix": []string{"pets", "ann"}, "limit": 2}, "milky 1.00, cats 0.71"},
		"filtered":          {object{"query": "cat", "filter": object{"n": 2}}, "milky 0.71, none <nil>"},
		"a page":            {object{"query": "cat", "limit": 2, "offset": 1, "namespace_prefix": []string{"pets"}}, "milky 0.71, dogs 0.00"},
		"a page behind":     {object{"query": "cat", "limit": 2, "offset": 5}, "blank <nil>, hidden <nil>"},
		"nothing there":     {object{"query": "cat", "namespace_prefix": []string{"nowhere"}}, ""},
		"without a query":   {object{"limit": 2}, "other <nil>, none <nil>"},
		"an empty query":    {object{"query": "", "limit": 1}, "other <nil>"},
		"a query of no use": {object{"query": "stone", "limit": 1, "filter": object{"n": 1}}, "dogs 0.00"},
	} {
		found := f.call(t, "POST", "/store/items/search", c.body)
		got := ranking(t, found)
		if name == "all" { // two have the same score, but for rounding
			got = strings.Replace(got, "other 0.71, milky 0.71", "milky 0.71, other 0.71", 1)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if total := found.Header.Get("X-Pagination-Total"); name == "a page" && (total != "6" || found.Header.Get("X-Pagination-Next") != "3") {
			t.Errorf("the page is of %s, and the next begins at %s", total, found.Header.Get("X-Pagination-Next"))
		}
	}
	if read := f.call(t, "GET", "/store/items?key=cats&namespace=pets.ann", nil); strings.Contains(string(read.text), "score") {
		t.Errorf("an item that is read has a score: %s", read.text)
	}
}

// TestAnItemThatIsPutAgainIsRankedAnew also puts it without vectors, and deletes it.
func TestAnItemThatIsPutAgainIsRankedAnew(t *testing.T) {
	t.Parallel()
	f, _ := setUpIndexed(t)
	for _, c := range []struct {
		text  string
		index any
		want  string
	}{{"cat", true, "k 1.00"}, {"dog", nil, "k 0.00"}, {"cat", false, "k <nil>"}, {"cat dog", nil, "k 0.71"}} {
		body := object{"namespace": []string{"a"}, "key": "k", "value": object{"text": c.text}, "index": c.index}
		wantStatus(t, f.call(t, "PUT", "/store/items", body), http.StatusNoContent)
		if got := ranking(t, f.call(t, "POST", "/store/items/search", object{"query": "cat"})); got != c.want {
			t.Errorf("%v: got %s, want %s", c, got, c.want)
		}
	}
	wantStatus(t, f.call(t, "DELETE", "/store/items", object{"namespace": []string{"a"}, "key": "k"}), http.StatusNoContent)
	if got := ranking(t, f.call(t, "POST", "/store/items/search", object{"query": "cat"})); got != "" {
		t.Errorf("after it was deleted: %s", got)
	}
}

// TestAnEmbeddingThatFailsStoresNothing checks that the existing item stays as it was.
func TestAnEmbeddingThatFailsStoresNothing(t *testing.T) {
	t.Parallel()
	f, agent := setUpIndexed(t)
	put := func(text string) response {
		return f.call(t, "PUT", "/store/items", object{"namespace": []string{"a"}, "key": "k", "value": object{"text": text}})
	}
	search := func(query string) response { return f.call(t, "POST", "/store/items/search", object{"query": query}) }
	wantStatus(t, put("cat"), http.StatusNoContent)
	const (
		broken   = "The agent's embedding has failed: ValueError"
		short    = "The agent's embedding cannot be used: 12 bytes are no vectors of 4 dimensions (store.index.dims is 4)."
		infinite = "The agent's embedding cannot be used: a number of a vector is not finite (store.index.dims is 4)."
	)
	for text, detail := range map[string]string{"broken": broken, "short": short, "infinite": infinite} {
		wantDetail(t, put(text), http.StatusServiceUnavailable, detail)
		wantDetail(t, search(text), http.StatusServiceUnavailable, detail)
	}
	for query, count := range map[string]int{"several": 2, "nothing": 0} {
		detail := fmt.Sprintf("The agent's embedding cannot be used: a query must have 1 vector, and has %d.", count)
		wantDetail(t, search(query), http.StatusServiceUnavailable, detail)
	}
	wantStatus(t, f.call(t, "PUT", "/store/items", object{"namespace": []string{"a.b"}, "key": "k", "value": object{"text": "broken"}}), http.StatusBadRequest)
	wantStatus(t, f.call(t, "PUT", "/store/items", object{"namespace": []string{"a"}, "key": "k", "value": object{}, "index": []string{""}}), http.StatusBadRequest)
	if got := ranking(t, search("cat")); got != "k 1.00" {
		t.Errorf("after failures: %s", got)
	}
	agent.Close()
	wantDetail(t, put("dog"), http.StatusServiceUnavailable, "The agent does not answer at the moment.")
	if got := f.call(t, "GET", "/store/items?key=k&namespace=a", nil).string("value", "text"); got != "cat" {
		t.Errorf("the item is %q", got)
	}
}

// TestARequestThatIsRefusedCostsNoEmbedding checks that the agent, which has ended, is not
// asked.
func TestARequestThatIsRefusedCostsNoEmbedding(t *testing.T) {
	t.Parallel()
	f, agent := setUpIndexedIn(t, quota.Limits{}.With(quota.Stored, large))
	wantStatus(t, f.call(t, "POST", "/threads", object{"metadata": object{"padding": strings.Repeat("x", large)}}), http.StatusOK)
	agent.Close()
	for what, body := range map[string]object{
		"a namespace": {"query": "cat", "namespace_prefix": []string{"a.b"}},
		"a page":      {"query": "cat", "offset": 10_000},
		"a filter":    {"query": "cat", "filter": object{"n": object{"$like": 1}}},
	} {
		if answer := f.call(t, "POST", "/store/items/search", body); answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: got %d %s", what, answer.StatusCode, answer.text)
		}
	}
	put := func(namespace string) response {
		return f.call(t, "PUT", "/store/items", object{"namespace": []string{namespace}, "key": "k", "value": object{"text": "cat"}})
	}
	wantStatus(t, put("a.b"), http.StatusBadRequest)
	fullOf(t, "an item", put("a"))
}

// TestVectorsAreStoredBytes checks that the vectors of a small item count, and only while it has
// them.
func TestVectorsAreStoredBytes(t *testing.T) {
	t.Parallel()
	const vectors = large / 16
	f, _ := setUpIndexedIn(t, quota.Limits{}.With(quota.Stored, 4*large))
	put := func(key string, index any) response {
		return f.call(t, "PUT", "/store/items", object{"namespace": []string{"n"}, "key": key, "value": object{"text": "cat"}, "index": index})
	}
	many := slices.Repeat([]string{"text"}, vectors)
	for range 3 {
		wantStatus(t, put("k", many), http.StatusNoContent)
	}
	f.wantStored(t, large, large+5000)
	wantStatus(t, put("k", false), http.StatusNoContent)
	f.wantStored(t, 0, 5000)
	for i := range 4 {
		wantStatus(t, put(fmt.Sprint(i), many), http.StatusNoContent)
	}
	fullOf(t, "an item", put("k", nil))
	for i := range 4 {
		wantStatus(t, f.call(t, "DELETE", "/store/items", object{"namespace": []string{"n"}, "key": fmt.Sprint(i)}), http.StatusNoContent)
	}
	f.wantStored(t, 0, 5000)
	wantStatus(t, put("k", many), http.StatusNoContent)
}

// TestAttackASmallItemWithManyTexts checks that the vectors take their memory from the budget of
// the request, and that there are no vectors without room for them.
func TestAttackASmallItemWithManyTexts(t *testing.T) {
	t.Parallel()
	f, _ := setUpIndexed(t)
	_, endpoint := embedder(t)
	agents := &runner.Agents{Deployments: f.deployments, Graph: graph.NewClient(nil), Target: targetAt(endpoint)}
	bound, refusal := budget.New(1<<20), fault.New(fault.Unavailable, "there is no room")
	embed := func() error {
		hold := budget.NewHold(bound, 0, time.Millisecond, refusal)
		defer hold.Close()
		before := bound.Held()
		texts := graph.Texts{Items: []graph.IndexedItem{{Value: json.RawMessage(`{"text": "cat"}`), Fields: slices.Repeat([]string{"text"}, 1000)}}}
		made, err := agents.Embed(budget.Holding(t.Context(), hold), f.deployment.Workspace, f.deployment.Deployment, texts)
		if err == nil && bound.Held()-before < 4*int64(len(made.Items[0])) {
			t.Errorf("%d bytes are held for vectors of %d bytes", bound.Held()-before, len(made.Items[0]))
		}
		return err
	}
	check.Must(t, embed())
	other := bound.Open("other", 0)
	if !other.Try(1 << 20) {
		t.Fatal("the bytes of a request that has ended are held")
	}
	if err := embed(); !errors.Is(err, refusal) {
		t.Errorf("got %v, want %v", err, refusal)
	}
}

// TestARankedItemLivesOnWhenItIsFound checks that the vectors expire with their item, and not
// before.
func TestARankedItemLivesOnWhenItIsFound(t *testing.T) {
	t.Parallel()
	_, endpoint := embedder(t)
	a := setUpAgingAs(t, indexed, func(c *agentserver.Config, f *fixture) {
		c.Agents = &runner.Agents{Deployments: f.deployments, Graph: graph.NewClient(nil), Target: targetAt(endpoint)}
	})
	wantStatus(t, a.call(t, "PUT", "/store/items", object{"namespace": []string{"a"}, "key": "k", "value": object{"text": "cat"}, "ttl": 10}), http.StatusNoContent)
	search := func() string { return ranking(t, a.call(t, "POST", "/store/items/search", object{"query": "cat"})) }
	for range 3 {
		a.age(6 * time.Minute)
		if got := search(); got != "k 1.00" {
			t.Fatalf("got %s", got)
		}
	}
	a.age(10 * time.Minute)
	if got := search(); got != "" {
		t.Errorf("when its time is over: %s", got)
	}
}

// TestLargeItemsAreRankedToo has more bytes of items than a search holds.
func TestLargeItemsAreRankedToo(t *testing.T) {
	t.Parallel()
	check.Large(t)
	f, _ := setUpIndexed(t)
	long := strings.Repeat(" x", 2<<20)
	for _, text := range []string{"cat", "cat dog", "dog", "cat cat dog"} {
		f.remember(t, text, object{"text": text + long}, "notes")
	}
	if got, want := ranking(t, f.call(t, "POST", "/store/items/search", object{"query": "cat"})), "cat 1.00"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := ranking(t, f.call(t, "POST", "/store/items/search", object{"query": "cat", "offset": 2})), "cat dog 0.71"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
