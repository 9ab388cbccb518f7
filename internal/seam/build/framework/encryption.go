package framework

import "slices"

// encryption reads the path of the repository's own encryption, if the platform asks it.
func (p *parser) encryption() {
	if !slices.Contains(p.offers, OfferEncryption) || p.config.Language != Python {
		return
	}
	if fields := p.object("encryption", `{"path": "./encryption.py:encryption"}`, map[string]string{"path": ""}); fields != nil {
		p.config.Encryption = p.variable("encryption.path", fields["path"])
	}
}
