package run

// Memory returns approximately how many bytes of memory the attempt's state takes.
func (a *Attempt) Memory() int { return a.Log.Values.Memory() }
