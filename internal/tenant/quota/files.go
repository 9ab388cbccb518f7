package quota

// Files bounds the files of a workspace on the server's machine: uploaded sources, builds, and
// pushed images. The files themselves are measured, so erasing a file gives its bytes back. A
// nil *Files bounds nothing.
type Files struct {
	Limits Limits
	// Measure returns how many bytes the files of a workspace take.
	Measure func(workspace string) int64
}

// Room refuses to keep another file for a workspace whose files have reached the limit.
func (f *Files) Room(workspace string) error {
	if f != nil && f.Measure(workspace) >= f.Limits.Of(FileBytes) {
		return f.Limits.Refuse(FileBytes)
	}
	return nil
}
