package thread

import (
	"bytes"
	"encoding/json"
	"maps"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// Ref names a thread. Every read and write begins with the workspace.
type Ref struct {
	Workspace, Deployment, Thread string
}

// Key is the thread's storage key.
func (r Ref) Key() table.Key { return keys.Thread(r.Workspace, r.Deployment, r.Thread) }

// Root is the id of the empty state, which the thread's first checkpoint follows. A branch may
// begin there, too. Its number is -1.
func (r Ref) Root() string { return r.Thread[:len(r.Thread)-numberDigits] + digits(-1) }

// Status is the status of its runs that a thread shows.
type Status string

const (
	// StatusIdle: no run is in flight.
	StatusIdle Status = "idle"
	// StatusBusy: a run is in flight.
	StatusBusy Status = "busy"
	// StatusInterrupted: the last run paused for a person, or it was interrupted or cancelled after
	// a worker had claimed it.
	StatusInterrupted Status = "interrupted"
	// StatusError: the last run failed.
	StatusError Status = "error"
)

// IdleView is the status and the questions that a thread shows while no run is in flight.
type IdleView struct {
	// Status is not StatusBusy.
	Status Status
	// Interrupts are the questions that a paused graph waits on, by task id: a JSON object, nil if
	// the graph did not pause.
	Interrupts json.RawMessage
	// Run is the run whose end the status tells of, "" before the first run.
	Run string
}

// Thread is a conversation.
type Thread struct {
	Ref
	Created, Updated time.Time
	// Status is the status of IdleView, or StatusBusy.
	Status Status
	// Metadata is a JSON object.
	Metadata json.RawMessage
	// Config is the configuration of the thread's runs, a JSON object without secrets; nil before
	// the first run with a configuration.
	Config json.RawMessage
	// Interrupts are the questions of IdleView: a JSON object. It is empty while a run is in
	// flight, because the run answers the questions, or passes over them.
	Interrupts json.RawMessage
	// IdleView is what the thread shows, or what it showed before the run in flight. It shows this
	// again if the run is removed, or leaves nothing in the state. If the run superseded other
	// runs, the seal first sets the IdleView to what these runs leave.
	IdleView IdleView
	// StateUpdated is when the newest checkpoint became part of the state, zero before the first
	// checkpoint.
	StateUpdated time.Time
	Lock         Lock
	// Part is the part in which the thread is counted, RunPart the part in which its run in
	// flight is counted; 0 if not counted.
	Part, RunPart quota.Part
	// Temporary says that the thread was made for a run and is deleted some time after the run.
	Temporary bool
	// Stored is how many bytes are counted for the thread.
	Stored int64
	// Unstored is the item of a thread that is stored with its first run, nil for any other thread.
	Unstored *table.Item
}

// Lock orders the runs of a thread. Run ids sort by the order of their turns, so a mark in the lock
// says something about all runs up to it. The marks stand below in the order of the runs that they
// usually name, the oldest run first.
type Lock struct {
	// Epoch counts the changes of the lock.
	Epoch int64

	// SealedUpTo is the newest run that the state accounts for: a run that ended by itself, a
	// run whose leftovers Seal has added, or a run that leaves nothing.
	SealedUpTo string
	// Unsealed says that there are runs after SealedUpTo that ended early and are not sealed yet.
	// While the thread is busy, they lie before Run. On an idle thread they may also lie behind
	// Run: their clients were lost while they waited for it.
	Unsealed bool
	// Position is the position of the last event of the sealed runs.
	Position int64
	// Checkpoint is the number of the newest checkpoint of the sealed runs, -1 if there is no
	// checkpoint.
	Checkpoint int64

	// SupersededUpTo is the newest run that an interrupt, a rollback or a cancel of the whole
	// thread superseded, "" if nothing did. Runs up to it that are still pending never begin.
	SupersededUpTo string
	// SupersedeReason is the reason of the newest interrupt. A superseded run that is stored as
	// pending has no other reason until it is sealed.
	SupersedeReason string
	// SupersededAt is when the interrupt of SupersedeReason was. A superseded run that is stored as
	// pending ended then. It is zero if an earlier version wrote the reason.
	SupersededAt time.Time
	// SupersededAlone says that the newest interrupt superseded the active run alone. That run is
	// stored with its reason.
	SupersededAlone bool

	// RemoveFrom and RemoveTo are the first and the last run of the range that a rollback removes,
	// "" if there is no such range. Readers skip these runs. Everything that the runs wrote is
	// erased before a worker claims another run.
	RemoveFrom, RemoveTo string

	// Run is the active run. On an idle thread it is the last run that was active, or the last
	// queued run that a cancel of the thread ended; "" before the first run.
	Run string
	// Busy says that Run is in flight.
	Busy bool
	// Due is the time at which a delayed active run may start. It is zero if the active run is not
	// delayed. An enqueued run whose turn is earlier goes first.
	Due time.Time

	// LastImmediate is the newest run that was not delayed, LastImmediateAt the time at which it
	// was created.
	LastImmediate   string
	LastImmediateAt time.Time

	// Last is the newest run of the thread: Run, or the last run of the queue behind it. The runs
	// after Run are the queue.
	Last string
}

// Removes reports whether a run is among the runs that are being removed.
func (l Lock) Removes(run string) bool {
	return l.RemoveFrom != "" && l.RemoveFrom <= run && run <= l.RemoveTo
}

// NeedsSeal reports whether the state lacks what interrupted runs have left, or still holds what a
// rollback is to remove.
func (l Lock) NeedsSeal() bool { return l.Unsealed || l.RemoveFrom != "" }

// NeedsReason reports whether runs that are not sealed may have no reason but SupersedeReason, and
// no end but SupersededAt. They must be sealed before another interrupt replaces both.
func (l Lock) NeedsReason() bool {
	return l.Unsealed && l.SupersededUpTo > l.SealedUpTo && !l.SupersededAlone
}

const kind = "thread"

// Names of the attributes in the thread's item. A stored name stays when the field gets a better
// name, because a server opens the data of earlier versions.
const (
	attrStatus          = "status"
	attrIdleViewRun     = "rest_run"
	attrEpoch           = "epoch"
	attrRun             = "run"
	attrBusy            = "busy"
	attrDue             = "due"
	attrLast            = "last"
	attrSupersededUpTo  = "overtaken"
	attrLastImmediate   = "tail"
	attrLastImmediateAt = "tail_at"
	attrRemoveFrom      = "cut"
	attrRemoveTo        = "cut_to"
	attrSealedUpTo      = "sealed"
	attrUnsealed        = "unsealed"
	attrPosition        = "position"
	attrCheckpoint      = "checkpoint"

	attrSupersedeReason = "overtaken_why"
	attrSupersededAlone = "overtaken_alone"
	attrSupersededAt    = "superseded_at"
	attrStateUpdated    = "state_updated"
	attrPart            = "use"
	attrRunPart         = "use_run"
	attrStored          = "stored"
	attrTemporary       = "temporary"
)

// body is the part of the thread's item that is not in its attributes: each change of the lock
// writes the attributes again. The body changes under the lock's epoch, too. The interrupts, like
// the attribute of the status, belong to IdleView.
type body struct {
	Metadata   json.RawMessage `json:"metadata"`
	Config     json.RawMessage `json:"config,omitempty"`
	Interrupts json.RawMessage `json:"interrupts,omitempty"`
}

// encodeBody returns the body of the thread's item.
func (t Thread) encodeBody() []byte {
	return record.Encode(body{Metadata: t.Metadata, Config: t.Config, Interrupts: t.IdleView.Interrupts})
}

func decode(ref Ref, item *table.Item) (Thread, error) {
	r := record.Read(item, kind)
	var b body
	r.Decode(&b)
	t := Thread{
		Ref: ref, Created: r.Created(), Updated: r.Updated(), StateUpdated: r.Time(attrStateUpdated),
		Status:     StatusBusy,
		IdleView:   IdleView{Status: Status(item.Text(attrStatus)), Interrupts: b.Interrupts, Run: item.Text(attrIdleViewRun)},
		Metadata:   b.Metadata,
		Config:     b.Config,
		Interrupts: json.RawMessage("{}"),
		Part:       quota.Part(item.Int(attrPart)),
		RunPart:    quota.Part(item.Int(attrRunPart)),
		Stored:     item.Int(attrStored),
		Temporary:  item.Bool(attrTemporary),
		Lock:       decodeLock(&r, item),
	}
	if t.IdleView.Status == StatusBusy { // an earlier version stored what is shown
		t.IdleView.Status = StatusIdle
	}
	if _, stored := item.Attrs[attrIdleViewRun]; !stored { // an earlier version showed the last run
		t.IdleView.Run = t.Lock.Run
	}
	if !t.Lock.Busy {
		if t.Status = t.IdleView.Status; b.Interrupts != nil {
			t.Interrupts = b.Interrupts
		}
	}
	return t, r.Err()
}

// decodeLock reads the lock from the thread's item.
func decodeLock(r *record.Reader, item *table.Item) Lock {
	return Lock{
		Epoch:           item.Int(attrEpoch),
		Run:             item.Text(attrRun),
		Busy:            item.Bool(attrBusy),
		Due:             r.Time(attrDue),
		Last:            item.Text(attrLast),
		SupersededUpTo:  item.Text(attrSupersededUpTo),
		SupersedeReason: item.Text(attrSupersedeReason),
		SupersededAt:    r.Time(attrSupersededAt),
		SupersededAlone: item.Bool(attrSupersededAlone),
		LastImmediate:   item.Text(attrLastImmediate),
		LastImmediateAt: r.Time(attrLastImmediateAt),
		RemoveFrom:      item.Text(attrRemoveFrom),
		RemoveTo:        item.Text(attrRemoveTo),
		SealedUpTo:      item.Text(attrSealedUpTo),
		Unsealed:        item.Bool(attrUnsealed),
		Position:        item.Int(attrPosition),
		Checkpoint:      item.Int(attrCheckpoint),
	}
}

// Usable returns a fault.NotFound for a temporary thread whose run has ended. Until the thread is
// deleted, the run can be read; for all else the thread does not exist any more.
func (t Thread) Usable() error {
	if hasServed(t.Temporary, t.Lock.Busy, t.Lock.Last) {
		return NotFound(t.Ref)
	}
	return nil
}

// hasServed reports whether a thread was made for a run, and the run has ended. last is the last
// run of the thread that has ended.
func hasServed(temporary, busy bool, last string) bool { return temporary && !busy && last != "" }

// isUsed reports whether an item stands for a thread that is not usable.
func isUsed(item *table.Item) bool {
	return hasServed(item.Bool(attrTemporary), item.Bool(attrBusy), item.Text(attrLast))
}

// ChangeLock returns the write that changes a thread's lock, on the condition that the lock's epoch
// is the epoch that was read. Every such change increases the epoch.
func (t Thread) ChangeLock(now time.Time) table.Update {
	change := record.Change(t.Key(), now, nil, t.unchanged())
	change.Add[attrEpoch] = 1
	return change
}

// Write returns the write of a change that ChangeLock began. It also stores a thread that is not
// stored yet.
func (t Thread) Write(change table.Update) table.Write {
	if t.Unstored == nil {
		return change
	}
	item := *t.Unstored
	item.Attrs, item.Index = maps.Clone(item.Attrs), maps.Clone(item.Index)
	maps.Copy(item.Attrs, change.Set)
	for name, more := range change.Add {
		item.Attrs[name] = t.Unstored.Int(name) + more
	}
	maps.Copy(item.Index, change.Index)
	if change.Body != nil {
		item.Body = change.Body
	}
	return table.Put{Item: item, If: table.Absent()}
}

// CheckLock returns the condition that the thread is still as it was read.
func (t Thread) CheckLock() table.Write { return table.Check{Key: t.Key(), If: t.unchanged()} }

// unchanged is the condition that the thread is still as it was read. The epochs of another thread
// that has its id, after it was deleted, begin again.
func (t Thread) unchanged() table.Cond {
	return table.All(table.Equals(attrEpoch, t.Lock.Epoch), table.Equals(record.Created, clock.Format(t.Created)))
}

// MarkNewest makes a new run the newest run of the thread. A run that is not delayed is also
// LastImmediate.
func (t Thread) MarkNewest(change *table.Update, run string, created time.Time, delayed bool) {
	change.Set[attrLast], change.Set[attrLastImmediate] = max(t.Lock.Last, run), t.Lock.LastImmediate
	if !delayed {
		change.Set[attrLastImmediate], change.Set[attrLastImmediateAt] = run, clock.Format(created)
	}
}

// MarkUnsealed says that the change leaves a run that has to be sealed.
func (t Thread) MarkUnsealed(change *table.Update) { change.Set[attrUnsealed] = true }

// MarkSuperseded supersedes all runs of the thread for the given reason. If the reason is "", the
// runs are to be removed, and the reason and the time of the newest interrupt stay.
func (t Thread) MarkSuperseded(change *table.Update, why string) {
	t.MarkUnsealed(change)
	change.Set[attrSupersededUpTo] = t.Lock.Last
	if why != "" {
		change.Set[attrSupersedeReason], change.Set[attrSupersededAt] = why, change.Set[record.Updated]
		change.Set[attrSupersededAlone] = t.Lock.Last == t.Lock.Run
	}
}

// SkipQueue makes the newest run the last run that was active, so that no run is queued.
func (t Thread) SkipQueue(change *table.Update) { change.Set[attrRun] = t.Lock.Last }

// MarkRemoved sets the range of runs that are being removed. The range is empty if both are "".
func (t Thread) MarkRemoved(change *table.Update, from, to string) {
	change.Set[attrRemoveFrom], change.Set[attrRemoveTo] = from, to
}

// MarkPosition sets the position of the last event of the sealed runs.
func (t Thread) MarkPosition(change *table.Update, position int64) {
	change.Set[attrPosition] = position
}

// MarkSealed says that the state has the leftovers of all runs up to the given run. position
// and checkpoint are the position and the checkpoint that the run has reached. more says
// whether other runs have to be sealed.
func (t Thread) MarkSealed(change *table.Update, run string, position, checkpoint int64, more bool) {
	t.MarkPosition(change, position)
	t.markCheckpoint(change, checkpoint)
	change.Set[attrSealedUpTo], change.Set[attrUnsealed] = run, more
}

func (t Thread) markCheckpoint(change *table.Update, number int64) {
	if change.Set[attrCheckpoint] = number; number != t.Lock.Checkpoint {
		change.Set[attrStateUpdated] = change.Set[record.Updated]
	}
}

// SetActive makes run the active run. If due is not zero, the run is delayed until due.
func (t Thread) SetActive(change *table.Update, run string, due time.Time) {
	change.Set[attrRun], change.Set[attrBusy], change.Set[attrDue] = run, true, ""
	if !due.IsZero() {
		change.Set[attrDue] = clock.Format(due)
	}
	if !t.Lock.Busy {
		change.Set[attrIdleViewRun] = t.IdleView.Run
		change.Index = map[table.Index]table.Key{table.ByDue: keys.BusyThread(t.Workspace, t.Deployment, t.Thread)}
	}
}

// SetIdle leaves the thread without a run in flight.
func (t Thread) SetIdle(change *table.Update) {
	change.Set[attrBusy], change.Set[attrDue] = false, ""
	change.Index = map[table.Index]table.Key{table.ByDue: {}}
	change.Unset = append(change.Unset, attrRunPart)
}

// SetIdleView sets what the thread shows while no run is in flight. It writes the body only if the
// questions change.
func (t Thread) SetIdleView(change *table.Update, view IdleView) {
	change.Set[attrStatus], change.Set[attrIdleViewRun] = string(view.Status), view.Run
	if bytes.Equal(view.Interrupts, t.IdleView.Interrupts) {
		return
	}
	t.IdleView = view
	change.Body = t.encodeBody()
}

// SetAssistant stores the configuration of a run that was created while the thread was not busy,
// and the run's assistant and graph in the metadata. They replace values that a client has set. It
// writes the body only if it changes.
func (t Thread) SetAssistant(change *table.Update, assistant, graph string, config json.RawMessage) {
	metadata, err := Named(t.Metadata, assistant, graph)
	if err != nil {
		return
	}
	next := t
	next.Config, next.Metadata = t.withConfig(config), metadata
	if bytes.Equal(next.Config, t.Config) && bytes.Equal(next.Metadata, t.Metadata) {
		return
	}
	change.Body = next.encodeBody()
}

// Named returns metadata with the assistant and the graph of a run, as clients find both in the
// metadata of threads and runs.
func Named(metadata json.RawMessage, assistant, graph string) (json.RawMessage, error) {
	names := struct {
		Assistant string `json:"assistant_id,omitempty"`
		Graph     string `json:"graph_id,omitempty"`
	}{assistant, graph}
	return record.Merge(metadata, record.Encode(names))
}
