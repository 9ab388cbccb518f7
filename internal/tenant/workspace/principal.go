package workspace

// Principal is the sender of a request, and what the sender may do.
type Principal struct {
	Workspace string
	// Key is the id of the API key, "" when another credential was sent.
	Key  string
	Role Role
	// Subject is the person or program that another credential names.
	Subject string
}

// May reports whether the principal has a permission.
func (p Principal) May(permission Permission) bool { return p.Role.May(permission) }
