package process

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-run/slipway/internal/base/disk"
)

// TestTheDiskIsLookedAtWhileAgentsRun, and is left alone on a server whose agents sleep.
func TestTheDiskIsLookedAtWhileAgentsRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		m := &machine{cfg: Config{Dir: t.TempDir(), DiskMB: 1, LookPause: time.Hour, Sockets: math.MaxInt}, disk: newDiskWatch(), look: func(string) (disk.Usage, error) {
			looks++
			return disk.Usage{}, nil
		}}
		ctx, stop := context.WithCancel(t.Context())
		go m.watch(ctx)
		a := &agent{}
		for range 2 {
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if looks != 0 {
				t.Fatalf("the disk was looked at %d times while no agent ran", looks)
			}
			m.disk.add(a)
			time.Sleep(time.Minute)
			m.disk.remove(a)
			time.Sleep(freePause) // the last question
			synctest.Wait()
			if looks == 0 {
				t.Fatal("the disk was not looked at while an agent ran")
			}
			looks = 0
		}
		stop()
		synctest.Wait()
	})
}
