package agenthost

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/seam/wire"
)

// logOf names the log that a request is about.
func (h *Host) logOf(r *http.Request) (revisionlog.Log, error) {
	log := revisionlog.Log{Revision: r.PathValue("revision"), Kind: revisionlog.Kind(r.PathValue("kind"))}
	if h.cfg.Logs == nil || !id.Valid(log.Revision) || (log.Kind != revisionlog.Build && log.Kind != revisionlog.Deploy) {
		return log, fault.New(fault.NotFound, "There is no such log on this host.")
	}
	return log, nil
}

func (h *Host) readLog(r *http.Request, query revisionlog.Query) (any, error) {
	log, err := h.logOf(r)
	if err != nil {
		return nil, err
	}
	page, err := h.cfg.Logs.Read(r.Context(), log, query)
	if errors.Is(err, revisionlog.ErrPosition) {
		return wire.LogPage{Page: page, NoPosition: true}, nil
	}
	return wire.LogPage{Page: page}, err
}

// appendLog adds lines that were printed on another machine.
func (h *Host) appendLog(r *http.Request, lines []string) (any, error) {
	log, err := h.logOf(r)
	if err != nil {
		return nil, err
	}
	return nil, h.cfg.Logs.Append(r.Context(), log, lines)
}

// watchLog answers with a line when it begins to watch, and with a line each time that the log
// changes, until the caller has gone.
func (h *Host) watchLog(w http.ResponseWriter, r *http.Request) error {
	log, err := h.logOf(r)
	if err != nil {
		return err
	}
	changes := h.cfg.Logs.Watch(log)
	defer changes.Stop()
	out := http.NewResponseController(w)
	for {
		if _, err := fmt.Fprintln(w); err != nil {
			return nil // the caller has gone
		}
		if err := out.Flush(); err != nil {
			return nil
		}
		select {
		case <-changes.C():
		case <-r.Context().Done():
			return nil
		}
	}
}
