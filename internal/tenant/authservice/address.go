package authservice

import "github.com/slipway-run/slipway/internal/base/outbound"

// maxURL is how long a URL may be.
const maxURL = outbound.MaxURL

// checkURL returns a fault.Invalid unless the service may call the URL.
func (s *Service) checkURL(field, raw string) error {
	return outbound.CheckURL(field, raw, s.private)
}
