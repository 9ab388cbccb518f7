package quota

import "context"

// Files bounds what a workspace keeps in files of the server's machine: sources that were uploaded,
// builds, and images that were pushed. The files themselves are measured, so that what is erased is
// given back with that. A nil *Files bounds nothing.
type Files struct {
	Limits Limits
	// Measure returns how many bytes the files of a workspace take.
	Measure func(workspace string) int64
}

// Room refuses to keep another file for a workspace whose files take as much as they may.
func (f *Files) Room(_ context.Context, workspace string) error {
	if f != nil && f.Measure(workspace) >= f.Limits.Of(FileBytes) {
		return f.Limits.Refuse(FileBytes)
	}
	return nil
}
