package keys_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// TestQueriesFindTheirKeysInOrder stores neighbours of every kind, and asks for each collection.
func TestQueriesFindTheirKeysInOrder(t *testing.T) {
	t.Parallel()
	tb := fixtures.Table(t)
	after := due.Add
	indexed := func(key table.Key, index table.Index, entry table.Key) table.Write {
		return table.Put{Item: table.Item{Key: key, Index: map[table.Index]table.Key{index: entry}}}
	}
	for _, w := range []string{"w", "w2"} {
		var writes []table.Write
		for _, d := range []string{"d1", "d2"} {
			writes = append(writes, indexed(keys.Deployment(w, d), table.ByList, keys.DeploymentListEntry(w, d)),
				indexed(keys.DeploymentName(w, d), table.ByList, keys.FreeDeploymentEntry(w, d)),
				indexed(keys.Deployment(w, d+"-deleted"), table.ByList, keys.DeletedDeploymentEntry(w, d+"-deleted")))
			for _, r := range []string{"r1", "r2"} {
				writes = append(writes, table.Put{Item: table.Item{Key: keys.Revision(w, d, r)}})
			}
			for _, thread := range []string{"t1", "t2"} {
				writes = append(writes, indexed(keys.Thread(w, d, thread), table.ByList, keys.ThreadListEntry(w, d, thread, due)))
				for n := range int64(12) {
					writes = append(writes, table.Put{Item: table.Item{Key: keys.Event(w, d, thread, n)}}, table.Put{Item: table.Item{Key: keys.Checkpoint(w, d, thread, n)}})
				}
			}
		}
		for len(writes) > 0 {
			n := min(len(writes), table.MaxWrites)
			check.Must(t, tb.Transact(t.Context(), writes[:n]...))
			writes = writes[n:]
		}
	}
	err := tb.Transact(t.Context(),
		indexed(keys.Run("w", "d1", "t1", "r1"), table.ByDue, keys.Leases.At("r1", after(0))),
		indexed(keys.Run("w", "d1", "t1", "r2"), table.ByDue, keys.Leases.At("r2", after(time.Hour))),
		indexed(keys.Run("w", "d1", "t1", "r3"), table.ByDue, keys.Leases.At("r3", after(time.Microsecond))),
		indexed(table.Key{PK: "a", SK: "late"}, table.ByDue, keys.RolloutEntry("late", after(time.Minute))),
		indexed(table.Key{PK: "a", SK: "early"}, table.ByDue, keys.RolloutEntry("early", after(-time.Minute))),
		indexed(table.Key{PK: "a", SK: "now"}, table.ByDue, keys.RolloutEntry("now", after(0))),
		indexed(table.Key{PK: "a", SK: "release"}, table.ByDue, keys.ReleaseEntry("release")),
		table.Put{Item: table.Item{Key: keys.DataKey(10)}}, table.Put{Item: table.Item{Key: keys.DataKey(9)}},
		indexed(keys.Execution("run", "x"), table.ByList, keys.RunningExecutionEntry("run", "x")),
		table.Put{Item: table.Item{Key: keys.Execution("run", "a")}}, table.Put{Item: table.Item{Key: keys.Execution("rollout", "a")}},
	)
	check.Must(t, err)
	put := func(key table.Key) table.Write { return table.Put{Item: table.Item{Key: key}} }
	var auth []table.Write
	for _, w := range []string{"w", "w2"} {
		for _, u := range []string{"u", "u#EVENTS", "u#"} {
			auth = append(auth, put(keys.AuthProvider(w, u)), put(keys.AuthDefault(w, u, "p", "a")), put(keys.AuthEvent(w, u, "e2")), put(keys.AuthEvent(w, u, "e1")),
				indexed(keys.AuthToken(w, u, "t1"), table.ByList, keys.AuthTokenListEntry(w, "p", u, "t1")),
				indexed(keys.AuthToken(w, u, "t2"), table.ByList, keys.AuthTokenListEntry(w, "p2", u, "t2")),
				indexed(keys.AuthConnection(w, u, "t1"), table.ByList, keys.AuthConnectionListEntry(w, "t1", u)))
		}
	}
	check.Must(t, tb.Transact(t.Context(), auth...))
	var git []table.Write
	for _, w := range []string{"w", "w2"} {
		git = append(git, put(keys.GitHubIntegration(w, "i2")), put(keys.GitHubIntegration(w, "i1")), put(keys.GitCredential(w, "c1")),
			indexed(keys.InstallationBinding(w, 7), table.ByList, keys.InstallationBindingEntry(w, 7)),
			indexed(keys.InstallationBinding(w, 77), table.ByList, keys.InstallationBindingEntry(w, 77)),
			indexed(keys.PushWatch(w, "d2"), table.ByList, keys.PushWatchEntry(w, "h/r", "main", "d2")),
			indexed(keys.PushWatch(w, "d1"), table.ByList, keys.PushWatchEntry(w, "h/r", "main", "d1")),
			indexed(keys.PushWatch(w, "d3"), table.ByList, keys.PushWatchEntry(w, "h/r", "next", "d3")))
	}
	check.Must(t, tb.Transact(t.Context(), git...))
	var listeners []table.Write
	for _, w := range []string{"w", "w2"} {
		for _, l := range []string{"l", "l2"} {
			listeners = append(listeners, put(keys.Listener(w, l)), put(keys.ListenerWake(w, l)), put(keys.ListenerUse(w, l, "n", "d1")), put(keys.ListenerUse(w, l, "n-2", "d2")),
				put(keys.ListenerTask(w, l, "r2")), put(keys.ListenerTask(w, l, "r1")),
				indexed(keys.ListenerRelease(w, "of-"+l, "r1"), table.ByList, keys.ListenerReleaseEntry(w, l, "r1")),
				indexed(keys.ListenerRelease(w, "of-"+l, "r2"), table.ByList, keys.ListenerReleaseEntry(w, l, "r2")))
		}
	}
	check.Must(t, tb.Transact(t.Context(), listeners...))
	var frames []table.Write
	for n := int64(1); n <= 3; n++ {
		frames = append(frames, put(keys.Frame("w", "d1", "t1", n)), put(keys.CheckpointName("w", "d1", "t1", fmt.Sprint(n))))
		for _, ns := range []string{"a", "b"} {
			frames = append(frames, put(keys.KeptFrame("w", "d1", "t1", ns, n)))
		}
		frames = append(frames, put(keys.FrameSince("w", "d1", "t1", n, 1)), put(keys.FrameSince("w", "d1", "t1", n, 2)))
	}
	check.Must(t, tb.Transact(t.Context(), frames...))
	numbers := func(prefix string, of ...string) []string {
		for i := range of {
			of[i] = prefix + of[i]
		}
		return of
	}
	for name, c := range map[string]struct {
		query table.Query
		want  []string
	}{
		"DeploymentList":            {keys.DeploymentList("w"), []string{"W#w#D#d1 DEPLOYMENT", "W#w#D#d2 DEPLOYMENT"}},
		"DeletedDeployments":        {keys.DeletedDeployments("w"), []string{"W#w#D#d1-deleted DEPLOYMENT", "W#w#D#d2-deleted DEPLOYMENT"}},
		"FreeDeployments":           {keys.FreeDeployments("w"), []string{"W#w#DEPLOYMENT-NAME#d1 NAME", "W#w#DEPLOYMENT-NAME#d2 NAME"}},
		"Revisions":                 {keys.Revisions("w", "d1"), []string{"W#w#D#d1 REV#r1", "W#w#D#d1 REV#r2"}},
		"ThreadLists":               {keys.ThreadLists("w", "d1")[6], []string{"W#w#D#d1#T#t1 THREAD"}},
		"Runs":                      {keys.Runs("w", "d1", "t1"), numbers("W#w#D#d1#T#t1 RUN#", "r1", "r2", "r3")},
		"RunsAfter nothing":         {keys.RunsAfter("w", "d1", "t1", ""), numbers("W#w#D#d1#T#t1 RUN#", "r1", "r2", "r3")},
		"RunsAfter one":             {keys.RunsAfter("w", "d1", "t1", "r1"), numbers("W#w#D#d1#T#t1 RUN#", "r2", "r3")},
		"RunsAfter the last":        {keys.RunsAfter("w", "d1", "t1", "r3"), nil},
		"Events":                    {keys.Events("w", "d1", "t1", 8, 10), numbers("W#w#D#d1#T#t1 EV#00000000000000", "09", "10")},
		"Events that are not there": {keys.Events("w", "d1", "t1", 11, 20), nil},
		"Checkpoints":               {keys.Checkpoints("w", "d1", "t1", 2), numbers("W#w#D#d1#T#t1 CP#00000000000", "2", "1", "0")},
		"Frames":                    {keys.Frames("w", "d1", "t1", 2), numbers("W#w#D#d1#T#t1 FD#00000000000", "2", "1")},
		"KeptFrames":                {keys.KeptFrames("w", "d1", "t1", "a", 2), keptOf("w", "d1", "t1", "a", 2, 1)},
		"FramesSince":               {keys.FramesSince("w", "d1", "t1", 1), numbers("W#w#D#d1#T#t1 FS#000000000001#0000000", "1", "2")},
		"AuthProviders":             {keys.AuthProviders("w"), numbers("W#w#AUTH-PROVIDERS ", "u", "u#", "u#EVENTS")},
		"AuthTokens":                {keys.AuthTokens("w", "u"), numbers("W#w#AUTH-USER#u TOKEN#", "t1", "t2")},
		"AuthDefaults":              {keys.AuthDefaults("w", "u"), []string{"W#w#AUTH-USER#u DEFAULT#p#a"}},
		"AuthEvents":                {keys.AuthEvents("w", "u"), numbers("W#w#AUTH-USER#u#EVENTS ", "e1", "e2")},
		"AuthConnections":           {keys.AuthConnections("w", "u"), []string{"W#w#AUTH-AGENT#u t1"}},
		"AuthConnectionList":        {keys.AuthConnectionList("w", "t1"), []string{"W#w#AUTH-AGENT#u t1", "W#w#AUTH-AGENT#u%23 t1", "W#w#AUTH-AGENT#u%23EVENTS t1"}},
		"AuthTokenList":             {keys.AuthTokenList("w", "p"), []string{"W#w#AUTH-USER#u TOKEN#t1", "W#w#AUTH-USER#u%23 TOKEN#t1", "W#w#AUTH-USER#u%23EVENTS TOKEN#t1"}},
		"GitHubIntegrations":        {keys.GitHubIntegrations("w"), numbers("W#w#GITHUB-INTEGRATIONS ", "i1", "i2")},
		"GitCredentials":            {keys.GitCredentials("w"), []string{"W#w#GIT-CREDENTIALS c1"}},
		"InstallationBindings":      {keys.InstallationBindings(7), []string{"W#w#INSTALLATION#7 BINDING", "W#w2#INSTALLATION#7 BINDING"}},
		"PushWatches":               {keys.PushWatches("w", "h/r", "main"), []string{"W#w#D#d1 PUSH-WATCH", "W#w#D#d2 PUSH-WATCH"}},
		"Listeners":                 {keys.Listeners("w"), numbers("W#w#LISTENERS ", "l", "l2")},
		"ListenerUses":              {keys.ListenerUses("w", "l"), numbers("W#w#LISTENER#l USE#", "n#d1", "n-2#d2")},
		"ListenerNamespaceUses":     {keys.ListenerNamespaceUses("w", "l", "n"), numbers("W#w#LISTENER#l USE#", "n#d1")},
		"ListenerTasks":             {keys.ListenerTasks("w", "l"), numbers("W#w#LISTENER#l#TASKS ", "r1", "r2")},
		"ListenerReleases":          {keys.ListenerReleases("w", "l", ""), numbers("W#w#D#of-l#LISTENER-RELEASES ", "r1", "r2")},
		"ListenerReleases after":    {keys.ListenerReleases("w", "l", "r1"), numbers("W#w#D#of-l#LISTENER-RELEASES ", "r2")},
		"Rollouts":                  {keys.Rollouts(due), []string{"a early", "a now"}},
		"Rollouts just before":      {keys.Rollouts(after(-time.Microsecond)), []string{"a early"}},
		"Releases":                  {keys.Releases(), []string{"a release"}},
		"DataKeys":                  {keys.DataKeys(), []string{"DATA-KEYS KEY#000009", "DATA-KEYS KEY#000010"}},
		"Executions":                {keys.Executions("run"), []string{"EXECUTIONS#run a", "EXECUTIONS#run x"}},
		"RunningExecutions":         {keys.RunningExecutions(), []string{"EXECUTIONS#run x"}},
	} {
		if diff := cmp.Diff(c.want, found(t, tb, c.query)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := len(found(t, tb, table.Query{PK: keys.Thread("w", "d1", "t2").PK})); got != 25 {
		t.Errorf("Partition: got %d items, want 25", got)
	}
	permits := []table.Write{put(keys.PermitWait("w", "d1", 1, "r2")), put(keys.PermitWait("w", "d1", 1, "r1")), put(keys.Permit("w", "d1", 1, 11)), put(keys.Permit("w", "d1", 1, 2)),
		put(keys.Permit("w", "d1", 2, 3)), put(keys.Permit("w", "d2", 1, 3)), put(keys.Permit("w2", "d1", 1, 3))}
	check.Must(t, tb.Transact(t.Context(), permits...))
	if diff := cmp.Diff(numbers("W#w#D#d1#SEATS#01 ", "SEAT#02", "SEAT#11", "WAIT#r1", "WAIT#r2"), found(t, tb, keys.Permits("w", "d1", 1))); diff != "" {
		t.Errorf("Permits (-want +got):\n%s", diff)
	}
	leased := map[string]bool{}
	for _, query := range keys.Leases.Until(after(time.Microsecond)) {
		for _, key := range found(t, tb, query) {
			leased[key] = true
		}
	}
	if diff := cmp.Diff(map[string]bool{"W#w#D#d1#T#t1 RUN#r1": true, "W#w#D#d1#T#t1 RUN#r3": true}, leased); diff != "" {
		t.Errorf("Leases (-want +got):\n%s", diff)
	}
}

func found(t *testing.T, tb table.Table, query table.Query) []string {
	t.Helper()
	items, err := table.AllItems(t.Context(), tb, query)
	check.Must(t, err)
	var keys []string
	for _, item := range items {
		keys = append(keys, item.Key.PK+" "+item.Key.SK)
	}
	return keys
}

func keptOf(w, d, thread, ns string, numbers ...int64) []string {
	var want []string
	for _, n := range numbers {
		key := keys.KeptFrame(w, d, thread, ns, n)
		want = append(want, key.PK+" "+key.SK)
	}
	return want
}
