package standalone

import (
	"github.com/slipway-run/slipway/internal/seam/compute/docker"
	computelocal "github.com/slipway-run/slipway/internal/seam/compute/local"
	"github.com/slipway-run/slipway/internal/seam/compute/process"
	"github.com/slipway-run/slipway/internal/seam/compute/replica"
)

// openTargets opens the targets where agents run. Only processes sleep: a container may need its
// image pulled again when it starts.
func (s *Server) openTargets() (err error) {
	limits := replica.Limits{ReadyLimit: s.config.ReadyLimit, DrainLimit: s.config.DrainLimit}
	resting := limits
	resting.SleepAfter, resting.Awake = s.config.SleepAfter, int(s.config.AwakeAgents)
	if s.processes, err = process.New(process.Config{
		Dir: s.path(agentsDir), Logs: s.logs, Log: s.config.Log, Private: s.config.Data, Users: s.users, Refuse: s.refuseCode,
		Limits: resting, Alarm: s.alarm, Try: s.try,
	}); err != nil {
		return err
	}
	s.closers.Add(s.processes.Close)
	if err := s.openRegistry(); err != nil {
		return err
	}
	if s.containers, err = docker.New(docker.Config{
		Dir: s.path("containers"), Logs: s.logs, Log: s.config.Log,
		Limits: limits, Alarm: s.alarm, Try: s.try, Login: s.login, CheckRegistry: s.checkRegistry,
	}); err != nil {
		return err
	}
	s.closers.Add(s.containers.Close)
	s.target = computelocal.New(s.processes, s.containers)
	return nil
}
