package lambda

// Free is how many processes of a function wait for a call.
func (p *Platform) Free(function string) int {
	pool := p.pools[function]
	pool.mu.Lock()
	defer pool.mu.Unlock()
	return len(pool.free)
}
